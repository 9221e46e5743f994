package redistest

import (
	"errors"
	"os"
)

// CopyDir copies the files of the running server to dir, which must not exist yet.
func (r *Server) CopyDir(dir string) error { return os.CopyFS(dir, os.DirFS(r.dir)) }

// RestoreDir starts the server again on the same port, with a copy from CopyDir in place of
// its files. This simulates a restored disk or snapshot. RestoreDir first kills a running
// server.
func (r *Server) RestoreDir(dir string) error {
	if r.dir == "" {
		return errClosed
	}
	if err := r.Kill(); err != nil {
		return err
	}
	if err := errors.Join(emptyDir(r.dir), os.CopyFS(r.dir, os.DirFS(dir))); err != nil {
		return err
	}
	return r.start()
}
