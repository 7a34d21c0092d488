// The event loop of one core: one io_uring, its connections, and their buffers. Each iteration
// waits for completions, passes each to its owner, runs posted tasks, sends once per connection,
// and refills receive buffers.
//
// Threads: run() is the reactor's thread; other threads may use only post(), Aio::complete() and
// the counters.
#pragma once

#include <liburing.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/boot_clock.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/result.h"
#include "forward/forwarder.h"
#include "iscsi/connection.h"
#include "iscsi/counters.h"
#include "iscsi/shard.h"
#include "net/admission.h"
#include "net/aio_queue.h"
#include "net/connection_context.h"
#include "net/connections.h"
#include "net/dialer.h"
#include "net/listeners.h"
#include "net/receive_ring.h"
#include "net/ring.h"
#include "net/submission_queue.h"
#include "net/task_queue.h"
#include "net/wakeup.h"

namespace sluice::net {

class Reactor final {
 public:
  struct Setup {
    unsigned index = 0;
    size_t memory = 0;  // bytes of I/O buffers
    int cpu = -1;       // CPU to pin the thread to; -1: none
    Nanos busy_poll = 0;
    Reactors* reactors = nullptr;
    iscsi::Gateway* gateway = nullptr;
    forward::Forwarder* forwarder = nullptr;  // null: no forwarding
    std::string tcp_congestion = {};          // for connections to other gateways
    Nanos (*clock)() = boot_clock_now;
  };
  explicit Reactor(Setup setup);
  ~Reactor();
  Reactor(const Reactor&) = delete;

  // Creates the thread and waits until its ring is set up.
  Result<void> start();
  // Ends the loop when all connections and operations are gone, or immediately if `now` is set.
  void stop(bool now);
  void join();

  void post(std::function<void()> task) { tasks_.post(std::move(task)); }
  // Until its loop ends it iterates (counters().loops) at least every limits::kTick.
  bool alive() const { return alive_.load(std::memory_order_relaxed); }
  bool on_this_thread() const { return std::this_thread::get_id() == thread_.get_id(); }
  const iscsi::Counters& counters() const { return counters_; }
  unsigned connections() const { return connections_.count(); }

  // --- reactor's thread only
  // Takes over a connected socket that a portal accepted, with its `admission`. `ends` contains its
  // addresses.
  void adopt(int fd, iscsi::Connection::Ends ends, std::shared_ptr<Admission> admission);
  void for_each_connection(const std::function<void(TcpConnection&)>& f) {
    connections_.for_each(f);
  }
  Aio& aio() { return aio_; }
  forward::Dialer& dialer() { return dialer_; }
  Listeners& listeners() { return listeners_; }
  iscsi::Shard& shard() { return shard_; }
  BufferPool& buffers() { return buffers_; }

  // After start().
  const RingFeatures& features() const { return features_; }

 private:
  enum class Stage : uint8_t {
    kRuns,
    kDrains,  // ends when all connections and operations are gone
    kEnds,
  };

  Result<void> set_up();
  void run();
  void loop_once();
  bool over() const;
  void handle(const io_uring_cqe& cqe);
  void arm_tick();
  void on_tick();
  void finish_batch();
  void on_stall(Nanos now);
  void run_posted();
  void tear_down();

  const Setup setup_;
  RingFeatures features_;
  BufferPool buffers_;
  iscsi::Counters counters_;
  iscsi::Shard shard_;
  SubmissionQueue submissions_;
  ReceiveRing receive_ring_{buffers_};
  Wakeup wakeup_;
  TaskQueue tasks_{wakeup_};
  AioQueue aio_{submissions_, wakeup_};
  Listeners listeners_{submissions_};
  Connections connections_;
  ConnectionContext context_{submissions_, receive_ring_, shard_, connections_.deferred()};
  Dialer dialer_;

  __kernel_timespec tick_interval_{};
  Stage stage_ = Stage::kRuns;
  std::atomic<bool> alive_{true};
  std::thread thread_;
};

}  // namespace sluice::net
