// One reactor's way to a device: a bounded number of its commands in flight, the rest of the
// requests in order behind them, and a poll in the reactor's ring while anything is in flight.
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
  virtual ~Channel() = default;  // nothing is in flight
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // As Backend::submit(). Keeps io.priv.p for itself; a and b are send()'s.
  bool submit(backend::Io& io);

 protected:
  enum class Sent : uint8_t {
    kSent,  // collect() will return this Io
    kOver,  // io.result is set, nothing was sent
    kFull,  // nothing was sent; to be tried again when something has ended
  };
  // Hands the next command of `io` to the device.
  virtual Sent send(backend::Io& io) = 0;
  struct Collected {
    backend::Io* io = nullptr;  // null: no command has ended (any more)
    bool over = false;          // io.result is set; else send() is to go on
  };
  virtual Collected collect() = 0;
  virtual int poll_fd() const = 0;     // readable once a command has ended
  virtual unsigned limit() const = 0;  // commands in flight, > 0
  // Looks again soon though nothing tells that it should: what was to be told can't be.
  void look_again_soon() { soon_ = true; }

 private:
  struct List {
    backend::Io* first = nullptr;
    backend::Io* last = nullptr;
    void push_back(backend::Io& io);
    void push_front(backend::Io& io);
    backend::Io* pop();
  };
  static void on_poll(AioOp& op, int32_t result);
  void turn();
  void go_on(backend::Io& io, List& over);
  void arm();

  Aio& aio_;
  AioOp poll_;
  bool armed_ = false;
  bool soon_ = false;
  unsigned in_flight_ = 0;
  List waiting_;  // not empty: something is in flight
};

// The channels of one device, made as reactors first use it, kept until it is closed.
class Channels {
 public:
  using Make = std::function<Result<std::unique_ptr<Channel>>(Aio&)>;
  explicit Channels(Make make) : make_(std::move(make)) {}

  // That of the reactor; null: there can't be one (the reason is logged once).
  Channel* of(Aio& aio);
  unsigned count() const { return count_.load(std::memory_order_relaxed); }
  void clear();  // nothing is in flight, nothing follows

 private:
  Channel* add(Aio& aio);

  struct Slot {
    std::atomic<Aio*> aio = nullptr;
    std::unique_ptr<Channel> channel;  // before `aio` is
  };
  const Make make_;
  std::mutex mutex_;
  std::atomic<unsigned> count_ = 0;
  bool told_ = false;
  std::array<Slot, limits::kMaxReactors> slots_;
};

}  // namespace sluice::passthrough
