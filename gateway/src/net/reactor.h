// The event loop of one core: one io_uring, its connections, and their buffers. Each iteration
// waits for completions, passes each to its owner, runs posted tasks, sends once per connection,
// and refills receive buffers.
//
// Threads: run() is the reactor's thread; other threads may use only post(), complete() and the
// counters.
#pragma once

#include <liburing.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/aio.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/stall.h"
#include "forward/forwarder.h"
#include "iscsi/connection.h"
#include "iscsi/counters.h"
#include "iscsi/shard.h"
#include "net/admission.h"
#include "net/receive_ring.h"
#include "net/ring.h"

namespace sluice::net {

class TcpConnection;

Nanos clock_now();

class Reactor final : public Aio, public forward::Dialer {
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
    Nanos (*clock)() = clock_now;
  };
  explicit Reactor(Setup setup);
  ~Reactor() override;
  Reactor(const Reactor&) = delete;

  // Creates the thread and waits until its ring is set up.
  Result<void> start();
  // Ends the loop when all connections and operations are gone, or immediately if `now` is set.
  void stop(bool now);
  void join();

  void post(std::function<void()> task);
  // Until its loop ends it iterates (counters().loops) at least every limits::kTick.
  bool alive() const { return alive_.load(std::memory_order_relaxed); }
  bool on_this_thread() const { return std::this_thread::get_id() == thread_.get_id(); }

  // --- reactor's thread only
  void submit(AioOp& op) override;
  void complete(AioOp& op, int32_t result) override;  // any thread
  // Returns a submission entry; submits the queued ones if the ring is full.
  io_uring_sqe* sqe();
  // Ensures that the next `entries` of sqe() are submitted together, as linked entries must be.
  void make_room(unsigned entries);
  enum class Kind : uint8_t { kAio, kReceive, kSend, kAccept, kWake, kTick, kIgnore, kTimer };
  static void tag(io_uring_sqe* sqe, void* owner, Kind kind) {
    sqe->user_data = reinterpret_cast<uintptr_t>(owner) | static_cast<uintptr_t>(kind);
  }
  static Kind kind_of(uint64_t user_data) { return static_cast<Kind>(user_data & 7); }
  static void* owner_of(uint64_t user_data) {
    return reinterpret_cast<void*>(user_data & ~uint64_t{7});  // NOLINT
  }
  // Takes over a connected socket that a portal accepted, with its `admission`. `ends` contains its
  // addresses.
  void adopt(int fd, iscsi::Connection::Ends ends, std::shared_ptr<Admission> admission);
  void dial(const std::string& address, std::shared_ptr<forward::Caller> caller) override;
  void flush_later(TcpConnection* connection) { to_flush_.push_back(connection); }
  void wait_for_buffers(TcpConnection* connection) { wait_for_buffers_.push_back(connection); }
  void destroy_later(TcpConnection* connection) { finished_.push_back(connection); }
  // Accepts on a listening socket, which the reactor then owns; `accepted` gets each new
  // descriptor. stop_listening() ends this for one socket or all.
  void listen(int fd, std::function<void(int)> accepted);
  void stop_listening();
  void stop_listening(int fd);
  void for_each_connection(const std::function<void(TcpConnection&)>& f);

  iscsi::Shard& shard() { return shard_; }
  BufferPool& buffers() { return buffers_; }
  ReceiveRing& receive_ring() { return *receive_ring_; }
  const iscsi::Counters& counters() const { return counters_; }
  const RingFeatures& features() const { return features_; }
  unsigned connections() const { return connection_count_.load(std::memory_order_relaxed); }
  Nanos now() const { return shard_.now; }

 private:
  struct Listener {
    int fd;
    std::function<void(int)> accepted;
    bool armed = false;
  };
  struct Timer;

  Result<void> set_up();
  void run();
  void loop_once();
  bool wait();
  void require_submitted(int result);
  void handle(const io_uring_cqe& cqe);
  void on_accept(Listener* listener, int result, uint32_t flags);
  void arm_accept(Listener* listener);
  void arm_wake();
  void arm_tick();
  void on_tick();
  void finish_batch();
  // --- reactor_stall.cc
  void hand_over();
  void withdraw();
  void on_stall(Nanos now);
  void run_posted();
  void on_timer(Timer* timer);
  void wake();
  void run_completed();
  void tear_down();

  const Setup setup_;
  io_uring ring_{};
  bool ring_open_ = false;
  RingFeatures features_;
  BufferPool buffers_;
  std::unique_ptr<ReceiveRing> receive_ring_;
  iscsi::Counters counters_;
  iscsi::Shard shard_;
  std::thread thread_;

  int wake_fd_ = -1;
  uint64_t wake_value_ = 0;
  std::atomic<bool> woken_{false};
  std::mutex posted_mutex_;
  std::vector<std::function<void()>> posted_;
  std::vector<std::function<void()>> running_;
  std::atomic<AioOp*> completed_{nullptr};  // from complete(), the last first

  __kernel_timespec tick_interval_{};
  std::vector<std::unique_ptr<TcpConnection>> connections_;
  std::vector<TcpConnection*> to_flush_;
  std::vector<TcpConnection*> wait_for_buffers_;
  std::vector<TcpConnection*> finished_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  uint64_t next_connection_ = 1;
  size_t operations_ = 0;  // number of AioOps in the kernel
  bool stopping_ = false;
  bool stop_now_ = false;
  StallGuard guard_;
  std::vector<AioOp*> withdrawn_;  // cancelled in the ring, not reported yet
  std::atomic<bool> alive_{true};
  std::atomic<unsigned> connection_count_{0};
};

}  // namespace sluice::net
