#include "net/wakeup.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "net/completion_tag.h"
#include "net/submission_queue.h"

namespace sluice::net {

Wakeup::~Wakeup() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> Wakeup::open() {
  fd_ = eventfd(0, EFD_CLOEXEC);
  if (fd_ < 0) return Error{"no file descriptor is left for a reactor (RLIMIT_NOFILE)"};
  return {};
}

void Wakeup::wake() {
  if (woken_.exchange(true, std::memory_order_acq_rel)) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(fd_, &one, sizeof one);
}

void Wakeup::arm(SubmissionQueue& submissions) {
  io_uring_sqe* e = submissions.sqe();
  io_uring_prep_read(e, fd_, &value_, sizeof value_, 0);
  tag(e, nullptr, CompletionKind::kWake);
}

bool Wakeup::take() {
  if (!woken_.load(std::memory_order_acquire)) return false;
  // Cleared before the lists are read, so that a thread that adds to them later writes again.
  woken_.exchange(false, std::memory_order_acq_rel);
  return true;
}

}  // namespace sluice::net
