// Command templates renders Go templates with the functions that Helm gives them.
//
// Standard input: JSON, a list of jobs. Standard output: JSON, for each job its text or
// why there is none.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
)

type job struct {
	Template string         `json:"template"`
	Strict   bool           `json:"strict"`
	Data     map[string]any `json:"data"`
}

type answer struct {
	Text  string `json:"text"`
	Error string `json:"error"`
}

func toYAML(value any) (string, error) {
	text, err := yaml.Marshal(value)
	return strings.TrimSuffix(string(text), "\n"), err
}

func required(message string, value any) (any, error) {
	if value == nil || value == "" {
		return nil, fmt.Errorf("%s", message)
	}
	return value, nil
}

// include knows the one define that machine classes refer to.
func include(name string, values []any) (string, error) {
	if name != "helm_lib_module_labels" || len(values) != 1 {
		return "", fmt.Errorf("no define %q", name)
	}
	chart := values[0].(map[string]any)["Chart"].(map[string]any)
	return fmt.Sprintf("labels:\n  heritage: deckhouse\n  module: %s", chart["Name"]), nil
}

func render(one job) answer {
	functions := sprig.TxtFuncMap()
	functions["toYaml"] = toYAML
	functions["required"] = required
	functions["include"] = include
	option := "missingkey=default"
	if one.Strict {
		option = "missingkey=error"
		// What a sandbox takes away: the same input shall give the same text.
		for _, name := range []string{"now", "env", "expandenv", "randAlphaNum", "include"} {
			delete(functions, name)
		}
	}
	parsed, err := template.New("job").Option(option).Funcs(functions).Parse(one.Template)
	if err != nil {
		return answer{Error: err.Error()}
	}
	var text strings.Builder
	if err := parsed.Execute(&text, one.Data); err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Text: text.String()}
}

func main() {
	var jobs []job
	if err := json.NewDecoder(os.Stdin).Decode(&jobs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	answers := make([]answer, 0, len(jobs))
	for _, one := range jobs {
		answers = append(answers, render(one))
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
