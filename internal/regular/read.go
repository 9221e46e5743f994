// Package regular reads files that the configuration names.
package regular

import (
	"errors"
	"fmt"
	"io"
	"os"
)

var errNotRegular = errors.New("not a regular file; name a file, or a link to one")

// Read returns the content of a file of at most limit bytes. It accepts only a regular file or a
// link to a regular file, because a FIFO or a device may block forever. The errors name the file.
func Read(path string, limit int64) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	switch info, err := file.Stat(); {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &os.PathError{Op: "read", Path: path, Err: errNotRegular}
	}
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("%s: it is larger than %d bytes", path, limit)
	}
	if err != nil {
		return nil, err
	}
	return content, nil
}
