#include "base/release_plan.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <new>

#include "base/safety_mutation.h"

// A sanitizer's run-time would see calls of a thread that it does not know.
#if defined(__clang__)
#define SLUICE_BARE __attribute__((disable_sanitizer_instrumentation))
#else
#define SLUICE_BARE __attribute__((no_sanitize("address", "thread", "undefined")))
#endif

// clone() of the C library under its other name, which no sanitizer intercepts.
extern "C" int bare_clone(int (*fn)(void*), void* stack, int flags, void* arg, ...) noexcept
    __asm__("__clone");

namespace sluice {
namespace {

constexpr int kDeathSignal = SIGUSR1;
// The signal comes while the creator ends; it is gone soon afterwards.
constexpr int kChecksAfterSignal = 1000;
constexpr long kCheckInterval = 1'000'000;  // ns

// What getdents64(2) returns.
struct Entry {
  uint64_t inode;
  int64_t offset;
  uint16_t length;
  uint8_t type;
  char name[1];
};

SLUICE_BARE bool same_start(const char* text, const char* start) {
  for (; *start != 0; ++text, ++start) {
    if (*text != *start) return false;
  }
  return true;
}

// -1: not a number.
SLUICE_BARE int number_in(const char* text) {
  if (*text == 0) return -1;
  int number = 0;
  for (; *text != 0; ++text) {
    if (*text < '0' || *text > '9') return -1;
    number = number * 10 + (*text - '0');
  }
  return number;
}

// Reads a hexadecimal number, and leaves *text behind it.
SLUICE_BARE uintptr_t hex_in(const char** text) {
  uintptr_t number = 0;
  for (;; ++*text) {
    const char c = **text;
    if (c >= '0' && c <= '9') {
      number = number * 16 + static_cast<uintptr_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      number = number * 16 + static_cast<uintptr_t>(c - 'a' + 10);
    } else {
      return number;
    }
  }
}

// The device whose hanging the close of a file waits for. It asks no server and no disk.
SLUICE_BARE uint64_t device_of(int fd) {
  struct statx status;
  if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) != 0) {
    return 0;
  }
  const bool block = (status.stx_mode & S_IFMT) == S_IFBLK;
  const uint64_t high = block ? status.stx_rdev_major : status.stx_dev_major;
  return high << 32 | (block ? status.stx_rdev_minor : status.stx_dev_minor);
}

// Ends a TCP connection even if an operation of a ring still refers to its socket. Data that is
// queued must not arrive late (DESIGN R6), so it is a reset.
SLUICE_BARE void reset(int fd) {
  const sockaddr none{AF_UNSPEC, {}};
  syscall(SYS_connect, fd, &none, sizeof none);
}

}  // namespace

ReleasePlan::Ptr ReleasePlan::create() {
  // Populated: a page fault could wait for a lock of the memory map that a blocked thread holds.
  void* memory = mmap(nullptr, sizeof(ReleasePlan), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  Ptr plan(new (memory) ReleasePlan);
  plan->nothing_ = ::open("/", O_PATH | O_CLOEXEC);
  if (plan->nothing_ < 0) return nullptr;
  plan->releases_ = !mutation_disables(Guard::kRelease);
  return plan;
}

void ReleasePlan::Unmap::operator()(ReleasePlan* plan) const {
  plan->~ReleasePlan();
  munmap(plan, sizeof(ReleasePlan));
}

ReleasePlan::~ReleasePlan() {
  if (nothing_ >= 0) ::close(nothing_);
}

int ReleasePlan::run() {
  process_ = getpid();
  creator_ = gettid();
  if (!begin(wait_for_death, stack_, CLONE_PARENT_SETTID, this, &pid_)) return errno;
  // The process uses the thread-local storage of this thread, which therefore only waits. Not with
  // CLONE_VFORK: SIGSTOP would not stop the thread. The process changes errno; the wait can only
  // fail by EINTR.
  siginfo_t ended{};
  while (waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT | __WALL) != 0) {
  }
  return 0;
}

void ReleasePlan::kill() const {
  if (pid() != 0) ::kill(pid(), SIGKILL);
}

void ReleasePlan::reap() const {
  if (pid() != 0) waitpid(pid(), nullptr, __WALL);
}

SLUICE_BARE bool ReleasePlan::begin(int (*what)(void*), Stack& stack, int flags, void* argument,
                                    pid_t* pid) {
  return bare_clone(what, stack.bytes + kStack, CLONE_VM | CLONE_FILES | CLONE_FS | flags, argument,
                    pid) >= 0;
}

SLUICE_BARE bool ReleasePlan::creator_lives() const {
  return syscall(SYS_tgkill, process_, creator_, 0) == 0;
}

// The creator waits for the end of this process, so its own end is that of the whole gateway. Then
// no thread of the gateway returns from the kernel.
SLUICE_BARE int ReleasePlan::wait_for_death(void* plan) {
  auto& self = *static_cast<ReleasePlan*>(plan);
  syscall(SYS_prctl, PR_SET_NAME, "sluice-release", 0, 0, 0);
  syscall(SYS_prctl, PR_SET_PDEATHSIG, kDeathSignal, 0, 0, 0);
  const uint64_t signals = uint64_t{1} << (kDeathSignal - 1);
  __atomic_store_n(&self.ready_, 1, __ATOMIC_RELEASE);
  for (int checks = 0; self.creator_lives();) {
    // At least once a second, so that a lost signal does no harm.
    const timespec patience{checks > 0 ? 0 : 1, checks > 0 ? kCheckInterval : 0};
    if (checks > 0) --checks;
    if (syscall(SYS_rt_sigtimedwait, &signals, nullptr, &patience, sizeof signals) ==
        kDeathSignal) {
      checks = kChecksAfterSignal;
    }
  }
  self.release();
  syscall(SYS_exit_group, 0);
  return 0;
}

SLUICE_BARE void ReleasePlan::release() {
  if (!releases_) return;
  list_descriptors();
  assign_closers();
  bool all = true;
  for (int i = 0; i < closers_count_; ++i) {
    closers_[i] = {this, i};
    if (begin(close_files, closer_stacks_[i], 0, &closers_[i], nullptr)) continue;
    all = false;
    closers_[i].plan = nullptr;
  }
  const bool unmaps = begin(unmap_rings, ring_stack_, 0, this, nullptr);
  // Without further processes, this one does their work. It may wait for a device.
  for (int i = 0; !all && i < closers_count_; ++i) {
    if (closers_[i].plan != nullptr) continue;
    closers_[i].plan = this;
    close_files(&closers_[i]);
  }
  if (!unmaps) unmap_rings(this);
}

// Closes what never waits, and lists the files.
SLUICE_BARE void ReleasePlan::list_descriptors() {
  listing_ = static_cast<int>(
      syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
  if (listing_ < 0) return;
  for (;;) {
    const long size = syscall(SYS_getdents64, listing_, text_, sizeof text_);
    if (size <= 0) return;
    for (long at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const Entry*>(text_ + at);
      at += entry->length;
      const int fd = number_in(entry->name);
      if (fd < 0 || fd == listing_ || fd == nothing_) continue;
      char target[16];
      const long length = syscall(SYS_readlinkat, listing_, entry->name, target, sizeof target - 1);
      if (length <= 0) continue;
      target[length] = 0;
      if (target[0] == '/') {
        note_file(fd);
        continue;
      }
      if (same_start(target, "socket:")) reset(fd);
      replace(fd);
    }
  }
}

SLUICE_BARE void ReleasePlan::note_file(int fd) {
  if (files_count_ < kFiles) files_[files_count_++] = {fd, -1, device_of(fd)};
}

SLUICE_BARE void ReleasePlan::assign_closers() {
  for (size_t i = 0; i < files_count_; ++i) {
    if (files_[i].closer >= 0) continue;
    const int closer = closers_count_ < kClosers ? closers_count_++ : kClosers - 1;
    for (size_t j = i; j < files_count_; ++j) {
      if (files_[j].device == files_[i].device) files_[j].closer = closer;
    }
  }
}

SLUICE_BARE int ReleasePlan::close_files(void* closer) {
  const auto& self = *static_cast<Closer*>(closer);
  for (size_t i = 0; i < self.plan->files_count_; ++i) {
    const File& file = self.plan->files_[i];
    if (file.closer == self.number) self.plan->replace(file.fd);
  }
  return 0;
}

SLUICE_BARE void ReleasePlan::replace(int fd) const { syscall(SYS_dup3, nothing_, fd, O_CLOEXEC); }

// A ring that is mapped stays open, and so do the sockets and files of its operations. This may
// wait for a blocked thread's page fault.
SLUICE_BARE int ReleasePlan::unmap_rings(void* plan) {
  auto& self = *static_cast<ReleasePlan*>(plan);
  self.list_rings();
  for (size_t i = 0; i < self.rings_count_; ++i) {
    const Range& ring = self.rings_[i];
    syscall(SYS_munmap, ring.begin, ring.end - ring.begin);
  }
  return 0;
}

SLUICE_BARE void ReleasePlan::list_rings() {
  const int maps =
      static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0));
  if (maps < 0) return;
  char line[160];  // a longer line is not a ring's
  size_t length = 0;
  for (;;) {
    const long size = syscall(SYS_read, maps, maps_, sizeof maps_);
    if (size <= 0) break;
    for (long i = 0; i < size; ++i) {
      if (maps_[i] != '\n') {
        if (length + 1 < sizeof line) line[length++] = maps_[i];
        continue;
      }
      line[length] = 0;
      length = 0;
      note_ring(line);
    }
  }
  syscall(SYS_close, maps);
}

// "7f12a000-7f12b000 rw-s 00000000 00:0e 1234   anon_inode:[io_uring]"
SLUICE_BARE void ReleasePlan::note_ring(const char* line) {
  const char* rest = line;
  while (*rest != 0 && !same_start(rest, "anon_inode:[io_uring]")) ++rest;
  if (*rest == 0 || rings_count_ == kRings) return;
  const uintptr_t begin = hex_in(&line);
  ++line;  // '-'
  rings_[rings_count_++] = {begin, hex_in(&line)};
}

}  // namespace sluice
