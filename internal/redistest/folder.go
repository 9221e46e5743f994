package redistest

import (
	"errors"
	"os"
)

// CopyFolder copies the server's files to dir, which must not exist yet. The server runs meanwhile.
func (r *Server) CopyFolder(dir string) error { return os.CopyFS(dir, os.DirFS(r.dir)) }

// SetBack starts the server again on the same port, with a copy that CopyFolder made in place of
// its files, as when a disk or a snapshot is restored. A running server is killed first.
func (r *Server) SetBack(dir string) error {
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
