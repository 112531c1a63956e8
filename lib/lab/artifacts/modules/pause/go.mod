module mooring/lab/pause

go 1.26.0
