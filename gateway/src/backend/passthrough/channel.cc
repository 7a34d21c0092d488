#include "passthrough/channel.h"

#include <poll.h>

#include <cerrno>

#include "base/clock.h"
#include "base/log.h"

namespace sluice::passthrough {
namespace {

using backend::Io;

constexpr Nanos kSoon = 10 * kMillisecond;

}  // namespace

void Channel::List::push_back(Io& io) {
  io.priv.p = nullptr;
  if (last) {
    last->priv.p = &io;
  } else {
    first = &io;
  }
  last = &io;
}

void Channel::List::push_front(Io& io) {
  io.priv.p = first;
  first = &io;
  if (!last) last = &io;
}

Io* Channel::List::pop() {
  Io* io = first;
  if (!io) return nullptr;
  first = static_cast<Io*>(io->priv.p);
  if (!first) last = nullptr;
  return io;
}

bool Channel::submit(Io& io) {
  if (waiting_.first || in_flight_ >= limit()) {
    waiting_.push_back(io);
    return false;
  }
  switch (send(io)) {
    case Sent::kOver:
      return true;
    case Sent::kSent:
      ++in_flight_;
      break;
    case Sent::kFull:
      if (in_flight_ == 0) {
        io.result = -EAGAIN;
        return true;
      }
      waiting_.push_back(io);
      break;
  }
  arm();
  return false;
}

void Channel::arm() {
  if (armed_ || in_flight_ == 0) return;
  armed_ = true;
  poll_ = AioOp{};
  poll_.kind = soon_ ? AioOp::Kind::kTimeout : AioOp::Kind::kPoll;
  poll_.length = static_cast<uint64_t>(kSoon);
  poll_.fd = poll_fd();
  poll_.done = &Channel::on_poll;
  poll_.context = this;
  soon_ = false;
  aio_.submit(poll_);
}

void Channel::on_poll(AioOp& op, int32_t result) {
  auto& self = *static_cast<Channel*>(op.context);
  self.armed_ = false;
  // A device that went hangs up at once and for good, while its last commands are still on the way.
  if (result < 0 || (result & (POLLHUP | POLLERR)) != 0) self.check_again_soon();
  self.collect_and_submit();
}

// `io` has no command in flight: sends its next one.
void Channel::go_on(Io& io, List& over) {
  switch (send(io)) {
    case Sent::kOver:
      over.push_back(io);
      break;
    case Sent::kSent:
      ++in_flight_;
      break;
    case Sent::kFull:
      if (in_flight_ == 0) {
        io.result = -EAGAIN;
        over.push_back(io);
      } else {
        waiting_.push_front(io);
      }
      break;
  }
}

void Channel::collect_and_submit() {
  List over;
  for (Collected ended = collect(); ended.io; ended = collect()) {
    --in_flight_;
    if (ended.over) {
      over.push_back(*ended.io);
    } else {
      go_on(*ended.io, over);
    }
  }
  while (waiting_.first && in_flight_ < limit()) {
    const Io* next = waiting_.first;
    go_on(*waiting_.pop(), over);
    if (waiting_.first == next) break;  // full
  }
  arm();
  // After the last done() call the device may be closed, so nothing of it is used afterwards.
  while (Io* io = over.pop()) io->done(*io);
}

Channel* Channels::of(Aio& aio) {
  const unsigned count = count_.load(std::memory_order_acquire);
  for (unsigned i = 0; i < count; ++i) {
    if (slots_[i].aio.load(std::memory_order_relaxed) == &aio) return slots_[i].channel.get();
  }
  return add(aio);
}

Channel* Channels::add(Aio& aio) {
  const std::lock_guard lock(mutex_);
  const unsigned count = count_.load(std::memory_order_relaxed);
  if (count == slots_.size()) return nullptr;
  auto made = make_(aio);
  if (!made) {
    if (!error_logged_) log::error("a reactor can't reach a device", {{"error", made.error()}});
    error_logged_ = true;
    return nullptr;
  }
  slots_[count].channel = std::move(made).value();
  slots_[count].aio.store(&aio, std::memory_order_relaxed);
  count_.store(count + 1, std::memory_order_release);
  return slots_[count].channel.get();
}

void Channels::clear() {
  const std::lock_guard lock(mutex_);
  const unsigned count = count_.exchange(0);
  for (unsigned i = 0; i < count; ++i) {
    slots_[i].aio = nullptr;
    slots_[i].channel.reset();
  }
}

}  // namespace sluice::passthrough
