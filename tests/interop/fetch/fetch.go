// SPDX-License-Identifier: Apache-2.0

// Fetches URLs as any Go program does; the certificates are those of SSL_CERT_FILE.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	for _, url := range os.Args[1:] {
		answer, err := http.Get(url)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if _, err := io.Copy(os.Stdout, answer.Body); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		answer.Body.Close()
	}
}
