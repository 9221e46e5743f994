// Command progress runs go test -json and tells what comes of it as it comes: a line for
// each test that has ended, the output of those that failed, and at the end what took
// longest and a list of what failed.
//
//	go run ./scripts/progress [-quiet] [-failed FILE] -- go test -json ./...
//
// With -quiet there is a line for each package, not for each test. With -failed the list
// is also appended to FILE. The exit code is that of the command.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
)

func main() {
	quiet := flag.Bool("quiet", false, "a line for each package only")
	file := flag.String("failed", "", "append what failed to `FILE`, too")
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	code, err := watch(flag.Args(), *quiet, *file, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "progress:", err)
	}
	os.Exit(code)
}

// watch runs the command and reports on what it prints. An interrupt reaches the command
// by itself, as one of the same terminal; what had failed by then is still told.
func watch(command []string, quiet bool, file string, out io.Writer) (code int, err error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	printed, err := cmd.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	r := newReport(out, quiet)
	readErr := r.read(printed)
	err = cmd.Wait()
	failed := r.failed()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code, err = max(1, exit.ExitCode()), nil
	case err != nil || len(failed) > 0:
		code = 1
	}
	if code != 0 && len(failed) == 0 {
		failed = []string{strings.Join(command, " ")}
	}
	r.close(failed)
	if file != "" && len(failed) > 0 {
		err = errors.Join(err, appendTo(file, strings.Join(failed, "\n")+"\n"))
	}
	return code, errors.Join(err, readErr)
}

func appendTo(path, text string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}
