// The access of one reactor to a device: a bounded number of commands in flight, a FIFO queue of
// further requests, and a poll in the reactor's ring while commands are in flight.
//
//   submit -> [waiting] -> send() .. device .. poll -> collect() -> [send() again] -> Io::done
//
// Threads: the reactor's only.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "backend/backend.h"
#include "base/aio.h"
#include "base/limits.h"
#include "base/result.h"

namespace sluice::passthrough {

class Channel {
 public:
  explicit Channel(Aio& aio) : aio_(aio) {}
  virtual ~Channel() = default;  // the caller ensures that nothing is in flight
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // As Backend::submit(). Uses io.priv.p; a and b belong to send().
  bool submit(backend::Io& io);

 protected:
  enum class Sent : uint8_t {
    kSent,  // collect() will return this Io
    kOver,  // io.result is set, nothing was sent
    kFull,  // nothing was sent; retry after a command has ended
  };
  // Sends the next command of `io` to the device.
  virtual Sent send(backend::Io& io) = 0;
  struct Collected {
    backend::Io* io = nullptr;  // null: no further command has ended
    bool over = false;          // io.result is set; otherwise call send() again
  };
  virtual Collected collect() = 0;
  virtual int poll_fd() const = 0;     // readable when a command has ended
  virtual unsigned limit() const = 0;  // commands in flight, > 0
  // Requests another check soon without an event, for completions that can't be signaled.
  void check_again_soon() { soon_ = true; }

 private:
  struct List {
    backend::Io* first = nullptr;
    backend::Io* last = nullptr;
    void push_back(backend::Io& io);
    void push_front(backend::Io& io);
    backend::Io* pop();
  };
  static void on_poll(AioOp& op, int32_t result);
  void collect_and_submit();
  void go_on(backend::Io& io, List& over);
  void arm();

  Aio& aio_;
  AioOp poll_;
  bool armed_ = false;
  bool soon_ = false;
  unsigned in_flight_ = 0;
  List waiting_;  // not empty only while something is in flight
};

// The channels of one device: created when a reactor first uses the device, kept until it is
// closed.
class Channels {
 public:
  using Make = std::function<Result<std::unique_ptr<Channel>>(Aio&)>;
  explicit Channels(Make make) : make_(std::move(make)) {}

  // The channel of the reactor; null: it can't be created (the reason is logged once).
  Channel* of(Aio& aio);
  unsigned count() const { return count_.load(std::memory_order_relaxed); }
  void clear();  // the caller ensures: nothing is in flight and nothing follows

 private:
  Channel* add(Aio& aio);

  struct Slot {
    std::atomic<Aio*> aio = nullptr;
    std::unique_ptr<Channel> channel;  // set before `aio` is
  };
  const Make make_;
  std::mutex mutex_;
  std::atomic<unsigned> count_ = 0;
  bool error_logged_ = false;
  std::array<Slot, limits::kMaxReactors> slots_;
};

}  // namespace sluice::passthrough
