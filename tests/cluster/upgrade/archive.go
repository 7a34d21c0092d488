package upgrade

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sluice.dev/sluice/tests/netns"
)

// MakeDirectory creates Directory, with its files in a scratch directory. Its pool is an XFS, because a snapshot needs one; if
// the machine has no XFS, `shares` is false. The mount namespace is the test's own. The caller must finally call undo.
func MakeDirectory(scratch string) (shares bool, undo func() error, err error) {
	if err := os.MkdirAll(Directory, 0o700); err != nil {
		return false, nil, err
	}
	if err := mount("--bind", scratch, Directory); err != nil {
		return false, nil, err
	}
	disk, err := netns.XFS(Directory)
	if err != nil {
		return false, func() error { return unmount(Directory) }, nil //nolint:nilerr // the caller decides
	}
	return true, func() error { return errors.Join(disk.Unmount(), unmount(Directory)) }, nil
}

func mount(words ...string) error { return command("mount", words...) }
func unmount(at string) error     { return command("umount", at) }

func command(program string, words ...string) error {
	if output, err := exec.Command(program, words...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(words, " "), err, output)
	}
	return nil
}

// isArchived reports whether the archive contains a path below Directory: not the disk under the pool, no logs, no sockets, and
// none of the files that etcd allocates for its next log.
func isArchived(name string, info fs.FileInfo) bool {
	return name != "disk" && !strings.HasSuffix(name, ".log") && !strings.HasSuffix(name, ".tmp") &&
		(info.IsDir() || info.Mode().IsRegular())
}

// Pack returns the archive of Directory.
func Pack() ([]byte, error) {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compressed)
	err = filepath.Walk(Directory, func(path string, info fs.FileInfo, err error) error {
		name, _ := filepath.Rel(Directory, path)
		if err != nil || name == "." || !isArchived(name, info) {
			return err
		}
		header := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), Typeflag: tar.TypeDir}
		if info.IsDir() {
			return archive.WriteHeader(header)
		}
		header.Typeflag, header.Size = tar.TypeReg, info.Size()
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil {
			_, err = archive.Write(data)
		}
		return err
	})
	err = errors.Join(err, archive.Close(), compressed.Close())
	return out.Bytes(), err
}

// Unpack extracts the archive to Directory.
func Unpack() error {
	compressed, err := gzip.NewReader(bytes.NewReader(Archive))
	if err != nil {
		return err
	}
	archive := tar.NewReader(compressed)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		path := filepath.Join(Directory, header.Name)
		if header.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(path, fs.FileMode(header.Mode)); err != nil {
				return err
			}
			continue
		}
		data, err := io.ReadAll(archive)
		if err == nil {
			err = writeSparsely(path, data, fs.FileMode(header.Mode))
		}
		if err != nil {
			return err
		}
	}
}

const page = 4096

// writeSparsely omits pages of zeros, so that images and logs take no more space than before.
func writeSparsely(path string, data []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	err = file.Truncate(int64(len(data)))
	at := int64(0)
	for part := range slices.Chunk(data, page) {
		if len(bytes.Trim(part, "\x00")) > 0 && err == nil {
			_, err = file.WriteAt(part, at)
		}
		at += int64(len(part))
	}
	return errors.Join(err, file.Close())
}
