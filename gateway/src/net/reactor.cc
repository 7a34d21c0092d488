#include "net/reactor.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <future>

#include "base/limits.h"
#include "base/log.h"
#include "base/reactor_thread.h"
#include "base/socket_address.h"
#include "net/completion_tag.h"

namespace sluice::net {

Reactor::Reactor(Setup setup)
    : setup_(std::move(setup)),
      buffers_(setup_.memory),
      submissions_(setup_.index, setup_.clock),
      dialer_(context_, connections_, tasks_, setup_.tcp_congestion) {
  shard_.gateway = setup_.gateway;
  shard_.counters = &counters_;
  shard_.context.aio = &aio_;
  shard_.context.buffers = &buffers_;
  shard_.context.reactors = setup_.reactors;
  shard_.context.reactor = setup_.index;
  shard_.context.now = &shard_.now;
  shard_.context.latencies = &shard_.latencies;
  shard_.context.clock = setup_.clock;
  shard_.context.forwarding = setup_.forwarder;
}

Reactor::~Reactor() { join(); }

Result<void> Reactor::start() {
  Result<void> opened = wakeup_.open();
  if (!opened) return opened;
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
  auto features = submissions_.open(limits::kRingEntries);
  if (!features) return Error{features.error()};
  features_ = features.value();
  auto incremental = receive_ring_.open(submissions_.ring());
  if (!incremental) return Error{incremental.error()};
  features_.incremental_buffers = incremental.value();
  shard_.now = setup_.clock();
  submissions_.start_over(shard_.now);
  wakeup_.arm(submissions_);
  arm_tick();
  return {};
}

void Reactor::join() {
  if (thread_.joinable()) thread_.join();
}

void Reactor::arm_tick() {
  tick_interval_.tv_nsec = limits::kTick;
  io_uring_sqe* e = submissions_.sqe();
  io_uring_prep_timeout(e, &tick_interval_, 0, 0);
  tag(e, nullptr, CompletionKind::kTick);
}

void Reactor::run() {
  const ReactorThread mark;
  while (!over()) loop_once();
  alive_.store(false, std::memory_order_relaxed);
  tear_down();
}

bool Reactor::over() const {
  if (stage_ == Stage::kDrains) return connections_.empty() && aio_.in_flight() == 0;
  return stage_ == Stage::kEnds;
}

void Reactor::loop_once() {
  aio_.hand_over();
  submissions_.submit_and_wait(setup_.busy_poll);
  const Nanos woke = setup_.clock();
  shard_.now = woke;
  if (submissions_.begin_iteration(woke)) on_stall(woke);
  unsigned head = 0;
  unsigned seen = 0;
  io_uring_cqe* cqe = nullptr;
  io_uring_for_each_cqe(submissions_.ring(), head, cqe) {
    handle(*cqe);
    ++seen;
  }
  io_uring_cq_advance(submissions_.ring(), seen);
  run_posted();
  finish_batch();
  counters_.loops.add();
  // The next thing is the system call that sends the answers.
  const Nanos done = setup_.clock();
  shard_.end_batch(done);
  counters_.busy_nanos.add(static_cast<uint64_t>(done - woke));
  if (submissions_.late(done) || submissions_.has_withdrawn()) on_stall(done);
}

void Reactor::handle(const io_uring_cqe& cqe) {
  void* owner = owner_of(cqe.user_data);
  switch (kind_of(cqe.user_data)) {
    case CompletionKind::kAio:
      return aio_.on_completion(*static_cast<AioOp*>(owner), cqe.res);
    case CompletionKind::kReceive:
      return static_cast<TcpConnection*>(owner)->on_receive(cqe.res, cqe.flags);
    case CompletionKind::kSend:
      return static_cast<TcpConnection*>(owner)->on_send(cqe.res);
    case CompletionKind::kAccept:
      return listeners_.on_accept(owner, cqe.res, cqe.flags);
    case CompletionKind::kWake:
      return wakeup_.arm(submissions_);
    case CompletionKind::kTick:
      arm_tick();
      return on_tick();
    case CompletionKind::kTimer:
      return aio_.on_timer(owner);
    case CompletionKind::kIgnore:
      return;
  }
}

void Reactor::run_posted() {
  if (!wakeup_.take()) return;
  aio_.run_completed();
  tasks_.run();
}

// What ends a batch: one gathered send per connection that has something to say, buffers for the
// next receives, and the end of connections that are over.
void Reactor::finish_batch() {
  connections_.flush();
  if (receive_ring_.replenish()) connections_.feed();
  connections_.destroy_finished();
}

void Reactor::on_tick() {
  connections_.tick();
  if (setup_.forwarder) setup_.forwarder->tick(setup_.index);
  listeners_.tick();
  counters_.buffer_in_use_bytes.set(buffers_.in_use());
  counters_.buffer_reserved_bytes.set(buffers_.reserved());
  counters_.buffer_budget_bytes.set(buffers_.budget());
}

// DESIGN R6: hosts behind the reactor's sockets may have repeated commands on another path, and old
// ones must not overtake those.
void Reactor::on_stall(Nanos now) {
  log::error("reactor stood still, its connections are closed unread",
             {{"reactor", setup_.index},
              {"milliseconds", submissions_.behind(now) / kMillisecond},
              {"connections", connections_.count()}});
  // First, so that cancelled operations end as aborted and cause no further work.
  connections_.abandon_all();
  aio_.cancel_unsubmitted();
  submissions_.start_over(now);
}

void Reactor::adopt(int fd, iscsi::Connection::Ends ends, std::shared_ptr<Admission> admission) {
  if (admission && admission->evicted()) {
    ::close(fd);
    return counters_.connections_evicted.add();
  }
  ends.local_address = local_address(fd);
  ends.peer_address = peer_address(fd);
  connections_
      .add(std::make_unique<TcpConnection>(context_, fd, connections_.next_id(), std::move(ends),
                                           std::move(admission)))
      .start();
}

void Reactor::stop(bool now) {
  post([this, now] {
    listeners_.end();
    stage_ = std::max(stage_, now ? Stage::kEnds : Stage::kDrains);
  });
}

void Reactor::tear_down() {
  if (setup_.forwarder) setup_.forwarder->stop(setup_.index);
  connections_.clear();
  // Whatever is still posted holds references into this reactor; let it go here.
  run_posted();
  receive_ring_.close();
  submissions_.close();
}

}  // namespace sluice::net
