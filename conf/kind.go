package conf

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kind is how values of a type are written. Its errors, and those of the rules below, go on after the quoted value:
// `"12x" is not a duration`.
type kind[T any] struct {
	parse  func(string) (T, error)
	format func(T) string
	text   bool // in YAML such a value is a string
}

var (
	text = kind[string]{
		parse:  func(s string) (string, error) { return s, nil },
		format: func(s string) string { return s },
		text:   true,
	}
	number   = kind[int]{parse: parseNumber, format: strconv.Itoa}
	duration = kind[time.Duration]{parse: parseDuration, format: formatDuration}
	toggle   = kind[bool]{parse: parseToggle, format: strconv.FormatBool}
)

func parseNumber(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if errors.Is(err, strconv.ErrRange) {
		return 0, errors.New("is too large a number")
	}
	if err != nil {
		return 0, errors.New("is not a whole number")
	}
	return n, nil
}

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, errors.New(`is not a duration (a number and a unit, such as "100ms" or "24h")`)
	}
	return d, nil
}

func parseToggle(s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("is neither true nor false")
}

// formatDuration is Duration.String without its idle zeros: 24h, not 24h0m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func atLeast[T cmp.Ordered](least T) func(T) error {
	return func(v T) error {
		if v < least {
			return fmt.Errorf("is less than %v", least)
		}
		return nil
	}
}

func moreThan[T cmp.Ordered](limit T) func(T) error {
	return func(v T) error {
		if v <= limit {
			return fmt.Errorf("is not more than %v", limit)
		}
		return nil
	}
}

func oneOf(allowed ...string) func(string) error {
	return func(v string) error {
		if !slices.Contains(allowed, v) {
			return fmt.Errorf("is none of %s", strings.Join(allowed, ", "))
		}
		return nil
	}
}

func notEmpty(v string) error {
	if v == "" {
		return errors.New("is empty")
	}
	return nil
}

// orEmpty lets a setting also be empty.
func orEmpty(rule func(string) error) func(string) error {
	return func(v string) error {
		if v == "" {
			return nil
		}
		return rule(v)
	}
}

func hostPort(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return errors.New(`is not host:port (such as "127.0.0.1:6380"; an IPv6 host stands in brackets)`)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return errors.New("has no port number between 0 and 65535")
	}
	return nil
}
