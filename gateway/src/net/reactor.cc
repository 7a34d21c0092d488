#include "net/reactor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <future>

#include "base/end_process.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/socket_address.h"
#include "net/tcp_connection.h"

namespace sluice::net {

Nanos clock_now() {
  timespec t{};
  clock_gettime(CLOCK_BOOTTIME, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

Reactor::Reactor(Setup setup) : setup_(setup), buffers_(setup.memory), guard_(setup.clock()) {
  shard_.gateway = setup.gateway;
  shard_.counters = &counters_;
  shard_.context.aio = this;
  shard_.context.buffers = &buffers_;
  shard_.context.reactors = setup.reactors;
  shard_.context.reactor = setup.index;
  shard_.context.now = &shard_.now;
  shard_.context.latencies = &shard_.latencies;
  shard_.context.clock = setup.clock;
  shard_.context.forwarding = setup.forwarder;
}

Reactor::~Reactor() {
  join();
  if (wake_fd_ >= 0) ::close(wake_fd_);
}

Result<void> Reactor::start() {
  wake_fd_ = eventfd(0, EFD_CLOEXEC);
  if (wake_fd_ < 0) return Error{"no file descriptor is left for a reactor (RLIMIT_NOFILE)"};
  std::promise<Result<void>> ready;
  auto answer = ready.get_future();
  thread_ = std::thread([this, &ready] {
    // SINGLE_ISSUER: the thread that sets the ring up is the one that may use it.
    Result<void> r = set_up();
    const bool ok = r.ok();
    ready.set_value(std::move(r));
    if (ok) run();
  });
  return answer.get();
}

Result<void> Reactor::set_up() {
  pthread_setname_np(pthread_self(), ("reactor-" + std::to_string(setup_.index)).c_str());
  if (setup_.cpu >= 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<unsigned>(setup_.cpu), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
      return Error{"reactor " + std::to_string(setup_.index) + " can't run on CPU " +
                   std::to_string(setup_.cpu) + "; name one this process may use"};
    }
  }
  auto features = open_ring(&ring_, limits::kRingEntries);
  if (!features) return Error{features.error()};
  ring_open_ = true;
  features_ = features.value();
  receive_ring_ = std::make_unique<ReceiveRing>(buffers_);
  auto incremental = receive_ring_->open(&ring_);
  if (!incremental) return Error{incremental.error()};
  features_.incremental_buffers = incremental.value();
  shard_.now = setup_.clock();
  guard_.start_over(shard_.now);
  arm_wake();
  arm_tick();
  return {};
}

void Reactor::join() {
  if (thread_.joinable()) thread_.join();
}

void Reactor::post(std::function<void()> task) {
  {
    const std::lock_guard lock(posted_mutex_);
    posted_.push_back(std::move(task));
  }
  wake();
}

void Reactor::wake() {
  if (woken_.exchange(true, std::memory_order_acq_rel)) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(wake_fd_, &one, sizeof one);
}

io_uring_sqe* Reactor::sqe() {
  io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
  while (!sqe) {
    hand_over();
    sqe = io_uring_get_sqe(&ring_);
  }
  return sqe;
}

void Reactor::make_room(unsigned entries) {
  while (io_uring_sq_space_left(&ring_) < entries) hand_over();
}

void Reactor::arm_wake() {
  io_uring_sqe* e = sqe();
  io_uring_prep_read(e, wake_fd_, &wake_value_, sizeof wake_value_, 0);
  tag(e, nullptr, Kind::kWake);
}

void Reactor::arm_tick() {
  tick_interval_.tv_nsec = limits::kTick;
  io_uring_sqe* e = sqe();
  io_uring_prep_timeout(e, &tick_interval_, 0, 0);
  tag(e, nullptr, Kind::kTick);
}

void Reactor::run() {
  while (true) {
    loop_once();
    if (stopping_ && (stop_now_ || (connections_.empty() && operations_ == 0))) break;
  }
  alive_.store(false, std::memory_order_relaxed);
  tear_down();
}

// The kernel has the entries, or gets them with the next call. A ring that takes none ends the
// process: its commands would never complete, and another gateway can take their volumes over.
void Reactor::require_submitted(int result) {
  if (submission_of(result) != Submission::kFailed) return;
  end_process("io_uring takes no more entries, the gateway kills itself",
              {{"reactor", setup_.index}, {"error", std::strerror(-result)}});
}

// Sleeps until an operation completes. With busy polling it polls first. True if it slept.
bool Reactor::wait() {
  if (setup_.busy_poll > 0) {
    require_submitted(io_uring_submit(&ring_));
    const Nanos until = setup_.clock() + setup_.busy_poll;
    do {
      io_uring_get_events(&ring_);
      if (io_uring_cq_ready(&ring_) != 0) return false;
    } while (setup_.clock() < until);
  }
  require_submitted(io_uring_submit_and_wait(&ring_, 1));
  return true;
}

void Reactor::loop_once() {
  wait();
  const Nanos woke = setup_.clock();
  shard_.now = woke;
  if (guard_.begin_iteration(woke)) on_stall(woke);
  unsigned head = 0;
  unsigned seen = 0;
  io_uring_cqe* cqe = nullptr;
  io_uring_for_each_cqe(&ring_, head, cqe) {
    handle(*cqe);
    ++seen;
  }
  io_uring_cq_advance(&ring_, seen);
  run_posted();
  finish_batch();
  counters_.loops.add();
  // The next thing is the system call that sends the answers.
  const Nanos done = setup_.clock();
  shard_.latencies.settle(done);
  counters_.busy_nanos.add(static_cast<uint64_t>(done - woke));
  if (guard_.late(done) || !withdrawn_.empty()) on_stall(done);
}

void Reactor::handle(const io_uring_cqe& cqe) {
  void* owner = owner_of(cqe.user_data);
  switch (kind_of(cqe.user_data)) {
    case Kind::kAio: {
      auto* op = static_cast<AioOp*>(owner);
      --operations_;
      return op->done(*op, cqe.res);
    }
    case Kind::kReceive:
      return static_cast<TcpConnection*>(owner)->on_receive(cqe.res, cqe.flags);
    case Kind::kSend:
      return static_cast<TcpConnection*>(owner)->on_send(cqe.res);
    case Kind::kAccept:
      return on_accept(static_cast<Listener*>(owner), cqe.res, cqe.flags);
    case Kind::kWake:
      return arm_wake();
    case Kind::kTick:
      arm_tick();
      return on_tick();
    case Kind::kTimer:
      return on_timer(static_cast<Timer*>(owner));
    case Kind::kIgnore:
      return;
  }
}

void Reactor::run_posted() {
  if (!woken_.load(std::memory_order_acquire)) return;
  // Cleared before the lists are taken, so that a thread that adds to them later writes again.
  woken_.exchange(false, std::memory_order_acq_rel);
  run_completed();
  {
    const std::lock_guard lock(posted_mutex_);
    running_.swap(posted_);
  }
  for (auto& task : running_) task();
  running_.clear();
}

// What ends a batch: one gathered send per connection that has something to say, buffers for the
// next receives, and the end of connections that are over.
void Reactor::finish_batch() {
  for (size_t i = 0; i < to_flush_.size(); ++i) to_flush_[i]->flush();
  to_flush_.clear();
  if (receive_ring_->replenish() && !wait_for_buffers_.empty()) {
    std::vector<TcpConnection*> fed;
    fed.swap(wait_for_buffers_);
    for (TcpConnection* c : fed) c->on_buffers();
  }
  if (finished_.empty()) return;
  for (TcpConnection* gone : finished_) {
    std::erase_if(connections_, [&](const auto& c) { return c.get() == gone; });
  }
  finished_.clear();
  connection_count_.store(static_cast<unsigned>(connections_.size()), std::memory_order_relaxed);
}

void Reactor::on_tick() {
  // By index: a tick may end connections, which only schedules their deletion.
  for (size_t i = 0; i < connections_.size(); ++i) connections_[i]->tick();
  if (setup_.forwarder) setup_.forwarder->tick(setup_.index);
  for (const auto& listener : listeners_) {
    if (!listener->armed && !stopping_) arm_accept(listener.get());
  }
  counters_.buffer_in_use_bytes.set(buffers_.in_use());
  counters_.buffer_reserved_bytes.set(buffers_.reserved());
  counters_.buffer_budget_bytes.set(buffers_.budget());
}

void Reactor::adopt(int fd, iscsi::Connection::Ends ends, std::shared_ptr<Admission> admission) {
  if (admission && admission->evicted()) {
    ::close(fd);
    return counters_.connections_evicted.add();
  }
  ends.local_address = local_address(fd);
  ends.peer_address = peer_address(fd);
  connections_.push_back(std::make_unique<TcpConnection>(*this, fd, next_connection_++,
                                                         std::move(ends), std::move(admission)));
  connection_count_.store(static_cast<unsigned>(connections_.size()), std::memory_order_relaxed);
  connections_.back()->start();
}

void Reactor::listen(int fd, std::function<void(int)> accepted) {
  listeners_.push_back(std::make_unique<Listener>(Listener{fd, std::move(accepted)}));
  arm_accept(listeners_.back().get());
}

void Reactor::arm_accept(Listener* listener) {
  io_uring_sqe* e = sqe();
  io_uring_prep_multishot_accept(e, listener->fd, nullptr, nullptr, SOCK_CLOEXEC);
  tag(e, listener, Kind::kAccept);
  listener->armed = true;
}

void Reactor::on_accept(Listener* listener, int result, uint32_t flags) {
  if (listener->fd < 0) {  // closed meanwhile
    if (result >= 0) ::close(result);
    if (flags & IORING_CQE_F_MORE) return;
    std::erase_if(listeners_, [&](const auto& l) { return l.get() == listener; });
    return;
  }
  if (!(flags & IORING_CQE_F_MORE)) listener->armed = false;
  if (result >= 0) {
    listener->accepted(result);
    if (!listener->armed && !stopping_) arm_accept(listener);
  } else if (result != -ECANCELED && result != -EBADF && result != -EINVAL) {
    // Mostly "no descriptors left": the next tick tries again instead of spinning.
    log::warning("accept failed", {{"error", std::strerror(-result)}});
  }
}

void Reactor::stop_listening() { stop_listening(-1); }

void Reactor::stop_listening(int fd) {
  for (const auto& listener : listeners_) {
    if (listener->fd < 0 || (fd >= 0 && listener->fd != fd)) continue;
    ::shutdown(listener->fd, SHUT_RDWR);  // ends the multishot accept
    ::close(listener->fd);
    listener->fd = -1;
    listener->armed = true;  // never again
  }
}

void Reactor::for_each_connection(const std::function<void(TcpConnection&)>& f) {
  for (size_t i = 0; i < connections_.size(); ++i) f(*connections_[i]);
}

void Reactor::stop(bool now) {
  post([this, now] {
    stopping_ = true;
    stop_now_ = stop_now_ || now;
  });
}

void Reactor::tear_down() {
  if (setup_.forwarder) setup_.forwarder->stop(setup_.index);
  connections_.clear();
  // Whatever is still posted holds references into this reactor; let it go here.
  run_posted();
  receive_ring_.reset();
  io_uring_queue_exit(&ring_);
  ring_open_ = false;
}

}  // namespace sluice::net
