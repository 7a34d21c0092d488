// Determines whether one other gateway is reachable: a session without a target, which is kept open
// and monitored (DESIGN R1). The peer sends a token every limits::kTokenInterval. A killed process
// resets the connection and refuses the next.
//
// Threads: one reactor.
#pragma once

#include <memory>
#include <string>

#include "forward/dialer.h"
#include "forward/owner_login.h"
#include "forward/peers.h"
#include "forward/stream.h"

namespace sluice::forward {

class Probe final : public StreamUser {
 public:
  Probe(const Surroundings& around, Dialer& dialer, Peer peer, const Nanos* now);
  ~Probe() override;

  const Peer& peer() const { return peer_; }
  // Call it every limits::kTick.
  void tick();

  // --- StreamUser
  void on_open() override;
  void on_pdu(pdu::Pdu& pdu) override;
  void on_ended(Ending why) override;

 private:
  void found(Reach reach, std::string refusal = {});
  void dial();
  void send_keepalive();

  const Surroundings& around_;
  Dialer& dialer_;
  const Peer peer_;
  const Nanos* now_;
  std::shared_ptr<Stream> stream_;
  Nanos last_received_;  // last input from the peer's process, or from its machine
  Nanos dial_at_ = 0;
  size_t key_ = 0;  // index of the key of the next login
  Nanos keepalive_sent_ = 0;
};

}  // namespace sluice::forward
