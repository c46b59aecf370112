// Serves go-ethereum over standard input and output, a line of JSON for each request and answer.
//
//	on-geth differential    runs the transactions of a case on its state
//	on-geth bench           prepares programs and times them
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
)

// version returns the version of go-ethereum that this program is built with.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, module := range info.Deps {
			if module.Path == "github.com/ethereum/go-ethereum" {
				return module.Version[1:]
			}
		}
	}
	return "unknown"
}

// answered calls answer and turns an error or a panic into the given form.
func answered(answer func([]byte) (any, error), line []byte, failed func(string) any) (found any) {
	defer func() {
		if problem := recover(); problem != nil {
			found = failed(fmt.Sprintf("panic: %v\n%s", problem, debug.Stack()))
		}
	}()
	found, err := answer(line)
	if err != nil {
		return failed(err.Error())
	}
	return found
}

func serve(answer func([]byte) (any, error), failed func(string) any) error {
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := bufio.NewWriterSize(os.Stdout, 1<<20)
	for {
		line, err := input.ReadBytes('\n')
		if err != nil {
			return nil
		}
		encoded, err := json.Marshal(answered(answer, line, failed))
		if err != nil {
			return err
		}
		output.Write(append(encoded, '\n'))
		if err := output.Flush(); err != nil {
			return nil
		}
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: on-geth differential|bench")
		os.Exit(2)
	}
	var err error
	switch os.Args[1] {
	case "differential":
		fmt.Printf("{\"peer\": \"geth %s\"}\n", version())
		err = serve(runCase, func(text string) any { return map[string]string{"failure": text} })
	case "bench":
		err = serve(newBench().answer, func(text string) any { return map[string]string{"error": text} })
	default:
		err = fmt.Errorf("unknown mode %q: expected differential or bench", os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
