// registry serves an OCI registry, as helm and the product's chart sources read one.
//
// Content is kept below a folder; it listens on the address given and nowhere else.
package main

import (
	"flag"
	"log"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	address := flag.String("address", "127.0.0.1:5000", "where to listen")
	folder := flag.String("folder", "", "where blobs are kept")
	flag.Parse()
	if *folder == "" {
		log.Fatal("registry: -folder is required")
	}
	server := &http.Server{
		Addr:              *address,
		Handler:           registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(*folder))),
		ReadHeaderTimeout: 10 * time.Second,
	}
	log.Fatal(server.ListenAndServe())
}
