// The loop: receive what is there, execute it, answer each connection with one gathered send.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "echo/connection.h"
#include "echo/ring.h"
#include "echo/store.h"

namespace sluice::bench {

class Server {
 public:
  static constexpr uint32_t kMaxConnections = 1024;

  // `spin_us`: how long to look for completions before sleeping.
  Server(Ring& ring, const Stores& stores, int listener, uint32_t spin_us)
      : ring_(ring), stores_(stores), listener_(listener), spin_us_(spin_us) {}

  // Runs until *stop is set by a signal.
  void run(const volatile int* stop);

 private:
  struct Peer {
    explicit Peer(const Stores& stores) : connection(stores) {}
    Connection connection;
    std::vector<uint8_t> buffer;  // plain receives only
    int fd = -1;
    bool receiving = false;
    bool sending = false;
    bool closing = false;
    bool dirty = false;
  };
  enum class Kind : uint8_t { kAccept, kReceive, kSend };

  void submit_accept();
  void submit_receive(uint32_t index);
  void submit_send(uint32_t index);
  void handle(const io_uring_cqe& cqe);
  void accepted(int fd);
  void received(uint32_t index, const io_uring_cqe& cqe);
  void sent(uint32_t index, int result);
  void close_when_idle(uint32_t index);
  void wait();

  Ring& ring_;
  const Stores& stores_;
  int listener_;
  uint32_t spin_us_;
  std::array<std::unique_ptr<Peer>, kMaxConnections> peers_;
  std::vector<uint32_t> dirty_;
};

}  // namespace sluice::bench
