#include "backend/device_threads.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include "backend/block_queue.h"
#include "backend/blocking_call.h"
#include "backend/ordered_calls.h"
#include "backend/read_ring.h"
#include "base/aio_list.h"
#include "base/blocking_section.h"
#include "base/limits.h"
#include "base/safety_mutation.h"

namespace sluice {

// All members are protected by DeviceThreads::Shared::mutex of its device.
class BlockingCalls::Strand : public std::enable_shared_from_this<BlockingCalls::Strand> {
 public:
  AioList waiting;      // behind the operation that is ready or runs
  bool active = false;  // an operation is ready or runs
};

namespace backend {
namespace {

unsigned threads_for(dev_t device) {
  if (mutation_disables(Guard::kDeviceCalls)) return std::numeric_limits<unsigned>::max();
  Result<BlockQueue> queue = read_block_queue(device);
  if (!queue || queue->requests == 0) return limits::kDeviceThreads;
  return std::clamp(queue->requests / 2, 1u, limits::kDeviceThreads);
}

}  // namespace

struct DeviceThreads::Shared {
  Shared(unsigned most_threads, StartThread s) : most(most_threads), start(s) {}

  // What must happen so that a thread runs the ready operations.
  enum class Need : uint8_t { kNothing, kWake, kThread };

  Need need_locked();
  void fail_ready_locked(std::unique_lock<std::mutex>& lock);
  bool wait(std::unique_lock<std::mutex>& lock);
  size_t take_locked(std::span<AioOp*> taken);
  void run(AioOp& op, std::unique_lock<std::mutex>& lock);
  static void ended(const std::shared_ptr<Shared>& shared, size_t reads, size_t left);
  static void meet(const std::shared_ptr<Shared>& shared, Need need);
  static void work(const std::shared_ptr<Shared>& shared);

  const unsigned most;
  const StartThread start;
  std::mutex mutex;
  std::condition_variable changed;
  AioList ready;
  size_t in_flight = 0;  // operations, at most `most`
  unsigned threads = 0;
  unsigned idle = 0;      // wait for `changed` and are not among `woken`
  unsigned woken = 0;     // have not seen it yet
  unsigned starting = 0;  // created, have not looked for work yet
  bool stopping = false;
};

// Each submission wakes at most one thread. That thread takes the first operation, and wakes
// another thread if more are ready.
DeviceThreads::Shared::Need DeviceThreads::Shared::need_locked() {
  if (ready.empty() || in_flight == most || woken + starting != 0) return Need::kNothing;
  if (idle != 0) {
    --idle;
    ++woken;
    return Need::kWake;
  }
  if (threads == most) return Need::kNothing;
  ++threads;
  ++starting;
  return Need::kThread;
}

void DeviceThreads::Shared::meet(const std::shared_ptr<Shared>& shared, Need need) {
  if (need == Need::kWake) shared->changed.notify_one();
  if (need != Need::kThread || shared->start([shared] { work(shared); })) return;
  std::unique_lock lock(shared->mutex);
  --shared->threads;
  --shared->starting;
  if (shared->threads == 0) shared->fail_ready_locked(lock);
}

// The process may have no more threads, so no thread would ever run these operations.
void DeviceThreads::Shared::fail_ready_locked(std::unique_lock<std::mutex>& lock) {
  AioList failed;
  while (AioOp* op = ready.pop()) {
    failed.push(*op);
    if (op->strand == nullptr) continue;
    while (AioOp* behind = op->strand->waiting.pop()) failed.push(*behind);
    op->strand->active = false;
  }
  lock.unlock();
  while (AioOp* op = failed.pop()) op->aio->complete(*op, -ENOMEM);
}

// False: the thread is no longer needed.
bool DeviceThreads::Shared::wait(std::unique_lock<std::mutex>& lock) {
  ++idle;
  changed.wait_for(lock, std::chrono::nanoseconds(limits::kDeviceThreadIdles),
                   [this] { return woken != 0 || stopping; });
  if (woken != 0) {
    --woken;
    return true;
  }
  --idle;
  return false;
}

// A thread that runs several reads reports that `reads` of them are complete. It may wait long for
// the `left` others.
void DeviceThreads::Shared::ended(const std::shared_ptr<Shared>& shared, size_t reads,
                                  size_t left) {
  Need need = Need::kNothing;
  {
    const std::lock_guard lock(shared->mutex);
    shared->in_flight -= reads;
    if (left != 0) need = shared->need_locked();
  }
  meet(shared, need);
}

// An operation that is no read, and all that wait in its strand. Called and returns with the lock.
void DeviceThreads::Shared::run(AioOp& op, std::unique_lock<std::mutex>& lock) {
  if (op.strand == nullptr) {
    lock.unlock();
    op.aio->complete(op, run_blocking(op));
    lock.lock();
    return;
  }
  // The caller may destroy the strand once its last operation is done.
  const std::shared_ptr<Strand> strand = op.strand->shared_from_this();
  AioList batch;
  batch.push(op);
  while (AioOp* next = strand->waiting.pop()) batch.push(*next);
  lock.unlock();
  run_in_order(batch);
  lock.lock();
  // Behind the operations of others, which have waited longer.
  if (AioOp* next = strand->waiting.pop()) {
    ready.push(*next);
  } else {
    strand->active = false;
  }
}

// Takes what one thread runs next: one operation, or several reads. Returns their number.
size_t DeviceThreads::Shared::take_locked(std::span<AioOp*> taken) {
  if (ready.empty() || in_flight == most) return 0;
  taken[0] = ready.pop();
  size_t count = 1;
  if (taken[0]->kind == AioOp::Kind::kReadv) {
    while (count < taken.size() && in_flight + count < most && !ready.empty() &&
           ready.front()->kind == AioOp::Kind::kReadv) {
      taken[count++] = ready.pop();
    }
  }
  in_flight += count;
  return count;
}

void DeviceThreads::Shared::work(const std::shared_ptr<Shared>& shared) {
  ::pthread_setname_np(::pthread_self(), "device");  // else that of the reactor that started it
  ReadRing ring([&](size_t reads, size_t left) { ended(shared, reads, left); });
  std::array<AioOp*, ReadRing::kMost> taken;
  std::unique_lock lock(shared->mutex);
  --shared->starting;
  for (;;) {
    const size_t count = shared->take_locked(taken);
    if (count == 0) {
      if (!shared->wait(lock)) break;
      continue;
    }
    if (const Need need = shared->need_locked(); need != Need::kNothing) {
      lock.unlock();
      meet(shared, need);
      lock.lock();
    }
    const BlockingSection section;
    if (taken[0]->kind == AioOp::Kind::kReadv) {
      lock.unlock();
      ring.run({taken.data(), count});
      lock.lock();
    } else {
      shared->run(*taken[0], lock);
      --shared->in_flight;
    }
  }
  --shared->threads;
}

std::shared_ptr<DeviceThreads> DeviceThreads::of(dev_t device) {
  static std::mutex mutex;
  static std::map<dev_t, std::weak_ptr<DeviceThreads>> all;
  const std::lock_guard lock(mutex);
  std::erase_if(all, [](const auto& entry) { return entry.second.expired(); });
  std::shared_ptr<DeviceThreads> threads = all[device].lock();
  if (!threads) all[device] = threads = std::make_shared<DeviceThreads>(threads_for(device));
  return threads;
}

DeviceThreads::DeviceThreads(unsigned most, StartThread start)
    : shared_(std::make_shared<Shared>(most, start)) {
  assert(most > 0);
}

DeviceThreads::~DeviceThreads() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stopping = true;
  }
  shared_->changed.notify_all();
}

std::shared_ptr<BlockingCalls::Strand> DeviceThreads::make_strand() {
  return std::make_shared<Strand>();
}

unsigned DeviceThreads::most() const { return shared_->most; }

void DeviceThreads::submit(AioList& ops) {
  Shared::Need need = Shared::Need::kNothing;
  {
    const std::lock_guard lock(shared_->mutex);
    while (AioOp* op = ops.pop()) {
      const bool behind = op->strand != nullptr && std::exchange(op->strand->active, true);
      (behind ? op->strand->waiting : shared_->ready).push(*op);
    }
    need = shared_->need_locked();
  }
  Shared::meet(shared_, need);
}

}  // namespace backend
}  // namespace sluice
