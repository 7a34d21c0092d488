// mounted BACKING AT shows the directory BACKING at AT (package disk) until SIGTERM. For scripts: on SIGUSR1 the disk hangs, on SIGUSR2 it
// continues. Prints a line when the disk is mounted, and when each signal has taken effect.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"sluice.dev/sluice/tests/disk"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 2 {
		return errors.New("usage: mounted BACKING AT")
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTERM, syscall.SIGINT)
	d, err := disk.Mount(arguments[0], arguments[1])
	if err != nil {
		return err
	}
	fmt.Println("mounted")
	for s := range signals {
		switch s {
		case syscall.SIGUSR1:
			d.Hang()
			fmt.Println("hangs")
		case syscall.SIGUSR2:
			d.Resume()
			fmt.Println("continues")
		default:
			return d.Close()
		}
	}
	return nil
}
