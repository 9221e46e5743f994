package conf

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// codec parses and formats the values of a type. Its errors, and the errors of the rules below,
// continue the quoted value: `"12x" is not a duration`.
type codec[T any] struct {
	parse        func(string) (T, error)
	format       func(T) string
	isYAMLString bool // in YAML the value must be a string
}

var (
	textCodec = codec[string]{
		parse:        func(s string) (string, error) { return s, nil },
		format:       func(s string) string { return s },
		isYAMLString: true,
	}
	numberCodec   = codec[int]{parse: parseNumber, format: strconv.Itoa}
	durationCodec = codec[time.Duration]{parse: parseDuration, format: formatDuration}
	sizeCodec     = codec[int64]{parse: parseSize, format: formatSize}
	boolCodec     = codec[bool]{parse: parseBool, format: strconv.FormatBool}
)

func parseNumber(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if errors.Is(err, strconv.ErrRange) {
		return 0, errors.New("is too large")
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

// sizeUnits lists the units of sizes, as in Redis.
var sizeUnits = []struct {
	name  string
	bytes int64
}{{"gb", 1 << 30}, {"mb", 1 << 20}, {"kb", 1 << 10}}

func parseSize(s string) (int64, error) {
	digits, unit := strings.ToLower(s), int64(1)
	for _, u := range sizeUnits {
		if number, ok := strings.CutSuffix(digits, u.name); ok {
			digits, unit = number, u.bytes
			break
		}
	}
	switch n, err := strconv.ParseInt(digits, 10, 64); {
	case errors.Is(err, strconv.ErrRange), err == nil && n > math.MaxInt64/unit:
		return 0, errors.New("is too large")
	case err != nil || n < 0:
		return 0, errors.New(`is not a size (a whole number and a unit: "kb", "mb" or "gb")`)
	default:
		return n * unit, nil
	}
}

func formatSize(n int64) string {
	for _, u := range sizeUnits {
		if n > 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

func parseBool(s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("is neither true nor false")
}

// formatDuration returns Duration.String without superfluous zeros: 24h, not 24h0m0s.
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

// checkMemorySize refuses a size that is too small for a few of the longest commands or messages.
func checkMemorySize(n int64) error {
	if n < 4<<20 {
		return errors.New("is less than 4mb")
	}
	return nil
}

func atLeast[T cmp.Ordered](minimum T) func(T) error {
	return func(v T) error {
		if v < minimum {
			return fmt.Errorf("is less than %v", minimum)
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
			return fmt.Errorf("is not one of %s", strings.Join(allowed, ", "))
		}
		return nil
	}
}

func checkNotEmpty(v string) error {
	if v == "" {
		return errors.New("is empty")
	}
	return nil
}

// allowEmpty returns a rule that also accepts an empty value.
func allowEmpty(rule func(string) error) func(string) error {
	return func(v string) error {
		if v == "" {
			return nil
		}
		return rule(v)
	}
}

func checkHostPort(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return errors.New(`is not host:port (such as "127.0.0.1:6380"; an IPv6 host is written in brackets)`)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return errors.New("has no port number between 0 and 65535")
	}
	return nil
}
