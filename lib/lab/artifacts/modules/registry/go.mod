module mooring/lab/registry

go 1.26.8

require github.com/google/go-containerregistry v0.22.1
