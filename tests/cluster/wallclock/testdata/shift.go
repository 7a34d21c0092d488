package time

import (
	"syscall"
	"unsafe"
)

// shift is the offset of the wall clock in seconds, from the file that SLUICE_TEST_CLOCK names: 8 bytes in the machine's byte
// order. It is mapped, because timers read the time where no system call is allowed. nil if there is no such file.
var shift = mapped()

func mapped() *int64 {
	name, ok := syscall.Getenv("SLUICE_TEST_CLOCK")
	if !ok {
		return nil
	}
	file, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(file)
	memory, err := syscall.Mmap(file, 0, int(unsafe.Sizeof(int64(0))), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil
	}
	return (*int64)(unsafe.Pointer(&memory[0]))
}

// shifted returns the present offset of the wall clock, in seconds.
func shifted() int64 {
	if shift == nil {
		return 0
	}
	return *shift
}
