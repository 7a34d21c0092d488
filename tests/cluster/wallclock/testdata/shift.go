package time

import (
	"syscall"
	"unsafe"
)

// shift is in the file that SLUICE_TEST_CLOCK names: by how many seconds the wall clock is off, 8 bytes in the machine's order. It
// is mapped, for timers ask for the time where no system call may be made. nil where there is no such file.
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

// shifted is by how many seconds the wall clock is off now.
func shifted() int64 {
	if shift == nil {
		return 0
	}
	return *shift
}
