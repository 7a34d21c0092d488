// The listening sockets of a reactor.
//
// Threads: the reactor's only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "net/submission_queue.h"

namespace sluice::net {

class Listeners {
 public:
  explicit Listeners(SubmissionQueue& submissions) : submissions_(submissions) {}

  // Accepts on a listening socket, which this object then owns; `accepted` gets each new
  // descriptor.
  void listen(int fd, std::function<void(int)> accepted);
  // Closes one socket, or all.
  void stop(int fd);
  void stop_all();
  // No socket is armed again.
  void end() { ended_ = true; }

  // A completion of CompletionKind::kAccept.
  void on_accept(void* listener, int result, uint32_t flags);
  // Tries again what failed, for example because no descriptor was left.
  void tick();

 private:
  struct Listener {
    enum class State : uint8_t { kIdle, kArmed, kClosed };
    int fd;
    std::function<void(int)> accepted;
    State state = State::kIdle;
  };

  void arm(Listener& listener);
  static void close(Listener& listener);

  SubmissionQueue& submissions_;
  std::vector<std::unique_ptr<Listener>> all_;
  bool ended_ = false;
};

}  // namespace sluice::net
