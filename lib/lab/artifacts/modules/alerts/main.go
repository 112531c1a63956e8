// Command alerts judges alerting rules with Prometheus' own code, and tells when they
// fire: what `promtool check rules` and `promtool test rules` do, of which the whole is
// not to be had as a Go module.
//
// Standard input: JSON, rules as YAML and series with a sample for each minute, null where
// there is none. Standard output: JSON, what is wrong with the rules, or each alert that
// fires, with the minute in which it begins to.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

type series struct {
	Labels map[string]string `json:"labels"`
	Values []*float64        `json:"values"`
}

type job struct {
	Rules  string   `json:"rules"`
	Series []series `json:"series"`
}

type firing struct {
	Alert       string            `json:"alert"`
	Minute      int               `json:"minute"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

type answer struct {
	Problems []string `json:"problems"`
	Firing   []firing `json:"firing"`
}

// sample is one number at one time, as the engine wants to read it.
type sample struct {
	t int64
	f float64
}

func (s sample) T() int64                      { return s.t }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.f }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// found is what a selector has matched.
type found struct {
	series []storage.Series
	at     int
}

func (f *found) Next() bool                        { f.at++; return f.at < len(f.series) }
func (f *found) At() storage.Series                { return f.series[f.at] }
func (f *found) Err() error                        { return nil }
func (f *found) Warnings() annotations.Annotations { return nil }

func kept(given []series) storage.Queryable {
	var all []storage.Series
	for _, one := range given {
		var samples []chunks.Sample
		for minute, value := range one.Values {
			if value != nil {
				samples = append(samples, sample{int64(minute) * 60_000, *value})
			}
		}
		all = append(all, storage.NewListSeries(labels.FromMap(one.Labels), samples))
	}
	look := func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		matched := &found{at: -1}
		for _, one := range all {
			fits := true
			for _, matcher := range matchers {
				fits = fits && matcher.Matches(one.Labels().Get(matcher.Name))
			}
			if fits {
				matched.series = append(matched.series, one)
			}
		}
		return matched
	}
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: look}}
}

type evaluator struct {
	engine *promql.Engine
	kept   storage.Queryable
}

func (e evaluator) query(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
	query, err := e.engine.NewInstantQuery(ctx, e.kept, nil, expr, at)
	if err != nil {
		return nil, err
	}
	defer query.Close()
	return query.Exec(ctx).Vector()
}

// Source: Prometheus rules/alerting.go: the variables that a text may use.
const variables = "{{$labels := .Labels}}{{$value := .Value}}"

func (e evaluator) expand(rule rulefmt.Rule, seen promql.Sample, at time.Time) (map[string]string, error) {
	data := template.AlertTemplateData(seen.Metric.Map(), nil, "", seen)
	texts := map[string]string{}
	for name, text := range rule.Annotations {
		expander := template.NewTemplateExpander(
			context.Background(), variables+text, rule.Alert, data,
			model.TimeFromUnix(at.Unix()), e.query, &url.URL{}, nil,
		)
		expanded, err := expander.Expand()
		if err != nil {
			return nil, err
		}
		texts[name] = expanded
	}
	return texts, nil
}

// watch gives the alerts of one rule: an element that was there all the time for which it
// has to be.
func (e evaluator) watch(rule rulefmt.Rule, minutes int) ([]firing, error) {
	var fired []firing
	since := map[string]int{}
	for minute := range minutes {
		at := time.Unix(int64(minute)*60, 0)
		elements, err := e.query(context.Background(), rule.Expr, at)
		if err != nil {
			return nil, err
		}
		still := map[string]int{}
		for _, seen := range elements {
			key := seen.Metric.String()
			begun, known := since[key]
			if !known {
				begun = minute
			}
			still[key] = begun
			if time.Duration(minute-begun)*time.Minute != time.Duration(rule.For) {
				continue
			}
			texts, err := e.expand(rule, seen, at)
			if err != nil {
				return nil, err
			}
			fired = append(fired, firing{rule.Alert, minute, seen.Metric.Map(), texts})
		}
		since = still
	}
	return fired, nil
}

func judge(given job) answer {
	read := parser.NewParser(parser.Options{})
	groups, errs := rulefmt.Parse(
		[]byte(given.Rules), false, model.UTF8Validation, read, promslog.NewNopLogger(),
	)
	result := answer{Problems: []string{}, Firing: []firing{}}
	for _, err := range errs {
		result.Problems = append(result.Problems, err.Error())
	}
	if len(errs) > 0 {
		return result
	}
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: read,
	})
	minutes := 0
	for _, one := range given.Series {
		minutes = max(minutes, len(one.Values))
	}
	all := evaluator{engine, kept(given.Series)}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			fired, err := all.watch(rule, minutes)
			if err != nil {
				result.Problems = append(result.Problems, fmt.Sprintf("%s: %s", rule.Alert, err))
			}
			result.Firing = append(result.Firing, fired...)
		}
	}
	return result
}

func main() {
	var jobs []job
	if err := json.NewDecoder(os.Stdin).Decode(&jobs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	answers := make([]answer, 0, len(jobs))
	for _, one := range jobs {
		answers = append(answers, judge(one))
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
