#include "backend/open_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/blocking_section.h"
#include "base/detached_thread.h"
#include "base/reactor_thread.h"

namespace sluice::backend {
namespace {

// The numbers of files that are being closed, by device. Never destroyed: threads may outlive main.
struct Closing {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<dev_t, unsigned> files;
};

Closing& closing() {
  static auto* const all = new Closing;
  return *all;
}

// Runs `work`, which may wait for the medium, on a thread of its own. A device that hangs has one
// such thread for each of its files, and delays no other.
void run_apart(dev_t device, std::function<void()> work) {
  {
    const std::lock_guard lock(closing().mutex);
    ++closing().files[device];
  }
  // What `work` owns ends on the thread, too.
  const auto all = [device, own = std::make_shared<std::function<void()>>(std::move(work))] {
    {
      const BlockingSection section;
      std::exchange(*own, nullptr)();
    }
    const std::lock_guard lock(closing().mutex);
    if (--closing().files[device] == 0) closing().files.erase(device);
    closing().changed.notify_all();
  };
  if (!start_detached_thread(all)) all();  // the process may have no more threads
}

}  // namespace

dev_t device_of(int fd) {
  struct stat status{};
  if (fstat(fd, &status) != 0) return 0;  // no device has this number
  return S_ISBLK(status.st_mode) ? status.st_rdev : status.st_dev;
}

struct OpenFile::State {
  FileDescriptor fd;
  dev_t device = 0;
  std::mutex mutex;
  bool syncs = false;
  bool releasing = false;
  bool released = false;
  std::vector<std::function<void()>> waiting;  // for `released`
};

OpenFile::OpenFile(FileDescriptor fd) : state_(std::make_shared<State>()), fd_(fd.get()) {
  state_->device = device_of(fd_);
  state_->fd = std::move(fd);
}

OpenFile::~OpenFile() {
  const std::lock_guard lock(state_->mutex);
  if (state_->releasing) return;
  flock(state_->fd.get(), LOCK_UN);
  // The owner of the descriptor ends, and so closes it, on the thread that runs this.
  std::function<void()> end = [fd = std::make_shared<FileDescriptor>(std::move(state_->fd)),
                               syncs = state_->syncs] {
    if (syncs) fdatasync(fd->get());
  };
  if (ReactorThread::is_present()) {
    run_apart(state_->device, std::move(end));
  } else {
    end();
  }
}

void OpenFile::sync_at_end() {
  const std::lock_guard lock(state_->mutex);
  state_->syncs = true;
}

// Calls of other threads may still use the open file, so the lock is released explicitly. The
// descriptor number stays in use: such a call must not access another file.
void OpenFile::release(std::function<void()> released) {
  bool first = false;
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->released) {
      state_->waiting.push_back(std::exchange(released, nullptr));
      first = !std::exchange(state_->releasing, true);
    }
  }
  if (released) return released();
  if (!first) return;
  flock(state_->fd.get(), LOCK_UN);
  run_apart(state_->device, [state = state_] {
    const FileDescriptor nothing(::open("/dev/null", O_PATH | O_CLOEXEC));
    // Without a free descriptor the file stays open until the last user ends, but unlocked.
    if (nothing.valid()) dup3(nothing.get(), state->fd.get(), O_CLOEXEC);
    std::vector<std::function<void()>> waiting;
    {
      const std::lock_guard lock(state->mutex);
      state->released = true;
      waiting.swap(state->waiting);
    }
    for (const auto& call : waiting) call();
  });
}

bool OpenFile::wait_for_closing(dev_t device, Nanos bound) {
  std::unique_lock lock(closing().mutex);
  return closing().changed.wait_for(lock, std::chrono::nanoseconds(bound),
                                    [device] { return !closing().files.contains(device); });
}

}  // namespace sluice::backend
