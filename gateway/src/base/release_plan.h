// What the release process (release_process.h) does, in memory that it shares with its creator.
//
// The code runs on threads without thread-local storage of their own, in a process in which any
// lock may be held by a dead thread. So it allocates nothing, takes no lock, calls only system
// calls, and uses only memory that exists before the process dies.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace sluice {

class ReleasePlan {
 public:
  struct Unmap {
    void operator()(ReleasePlan* plan) const;
  };
  using Ptr = std::unique_ptr<ReleasePlan, Unmap>;

  // nullptr: no memory or descriptor is left.
  static Ptr create();

  // Starts the release process, and returns when that has ended. If the calling process is killed
  // meanwhile, the release begins. The calling thread must have all signals blocked. 0, or an
  // errno.
  int run();
  void kill() const;  // the release process; another thread, before reap()
  void reap() const;  // after run(): until then its pid is not reused

  bool ready() const { return __atomic_load_n(&ready_, __ATOMIC_ACQUIRE) != 0; }
  pid_t pid() const { return __atomic_load_n(&pid_, __ATOMIC_ACQUIRE); }

 private:
  static constexpr size_t kStack = size_t{16} << 10;  // bytes, of each process
  // Devices whose files are closed at the same time. Files of further devices wait for one of them.
  static constexpr int kClosers = 64;
  static constexpr size_t kFiles = 65536;  // further ones stay open
  static constexpr size_t kRings = 1024;   // mappings of rings, at most three for each ring

  struct File {
    int fd;
    int closer;  // -1: none yet
    uint64_t device;
  };
  struct Range {
    uintptr_t begin;
    uintptr_t end;
  };
  struct Closer {
    ReleasePlan* plan;
    int number;
  };
  struct alignas(64) Stack {
    char bytes[kStack];
  };

  ReleasePlan() = default;
  ~ReleasePlan();

  static int wait_for_death(void* plan);
  static int close_files(void* closer);
  static int unmap_rings(void* plan);
  bool creator_lives() const;
  void release();
  void list_descriptors();
  void note_file(int fd);
  void assign_closers();
  void replace(int fd) const;
  void list_rings();
  void note_ring(const char* line);
  static bool begin(int (*what)(void*), Stack& stack, int flags, void* argument, pid_t* pid);

  int nothing_ = -1;  // an O_PATH descriptor, which replaces the others
  pid_t process_ = 0;
  pid_t creator_ = 0;  // the thread in run()
  pid_t pid_ = 0;
  int ready_ = 0;
  bool releases_ = true;  // false: a safety mutation
  int listing_ = -1;
  size_t files_count_ = 0;
  size_t rings_count_ = 0;
  int closers_count_ = 0;
  Closer closers_[kClosers];
  Range rings_[kRings];
  File files_[kFiles];
  char text_[size_t{16} << 10];
  char maps_[4096];
  Stack stack_;
  Stack ring_stack_;
  Stack closer_stacks_[kClosers];
};

}  // namespace sluice
