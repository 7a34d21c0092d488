// Two simulated gateways and the network between them: `owner` has the disks, `origin` forwards. A
// test passes commands to a nexus at `origin`, whose units follow the owner's in epoch 1.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "forward/forwarder.h"
#include "simulation/simulated_gateway.h"

namespace sluice::simulation {

// A forwarded command with memory for its data.
struct ForwardedCommand {
  lun::Command command;
  bool ended = false;
  std::vector<uint8_t> out;

  std::vector<uint8_t> data_in() const;
  uint8_t sense_key() const { return command.sense_size == 0 ? 0 : command.sense[2] & 0xf; }
  uint8_t asc() const { return command.sense_size == 0 ? 0 : command.sense[12]; }
  uint8_t ascq() const { return command.sense_size == 0 ? 0 : command.sense[13]; }
  bool unavailable() const { return sense_key() == 2 && asc() == 0x04 && ascq() == 0x0a; }
};

class GatewayPair final : public forward::Dialer {
 public:
  static constexpr uint16_t kOrigin = 1;
  static constexpr uint16_t kOwner = 2;

  explicit GatewayPair(iscsi::Settings settings = {});
  ~GatewayPair() override;

  SimulatedGateway owner;
  SimulatedGateway origin;
  forward::Forwarder forwarder;

  // The peer entry of the owner, as the control plane sends it.
  forward::Peer owner_peer() const;
  void set_owner(const forward::Peer& peer);

  // A host's nexus at the origin, without unit attentions, and its link.
  std::shared_ptr<lun::Nexus> open_nexus(uint8_t isid = 1, bool read_only = false);
  std::shared_ptr<lun::Link> link(const std::shared_ptr<lun::Nexus>& nexus);

  // Prepares a command; `out` is sent in pieces of `piece` bytes.
  std::shared_ptr<ForwardedCommand> command(ByteView cdb, uint32_t data_in, ByteView out = {},
                                            uint64_t lun = 0, size_t piece = 65536);
  void begin(lun::Nexus& nexus, ForwardedCommand& command);
  // As begin(), then runs everything until nothing is left to do.
  std::shared_ptr<ForwardedCommand> run(lun::Nexus& nexus, ByteView cdb, uint32_t data_in,
                                        ByteView out = {}, uint64_t lun = 0, size_t piece = 65536);

  // Runs until nothing is left to do.
  void settle();
  void advance(Nanos span);

  // --- the network
  enum class Network : uint8_t {
    kWhole,
    kSilent,   // nothing is delivered, in either direction
    kRefused,  // connections are refused
  };
  Network network = Network::kWhole;
  // The origin sees a reset. The owner also sees it, unless `one_sided`: then its session stays.
  void reset_connections(bool one_sided = false);
  size_t connections() const { return calls_.size(); }
  unsigned dialled() const { return dialled_; }
  // The owner's end of the latest connection.
  SimulatedConnection* far_end() { return calls_.empty() ? nullptr : calls_.back()->far; }
  // Sends arbitrary bytes to the origin on the latest connection, as a faulty owner might.
  void send_as_owner(ByteView bytes);
  // Number of bytes from the origin to the owner.
  uint64_t sent() const { return sent_; }

  // --- forward::Dialer
  void dial(const std::string& address, std::shared_ptr<forward::Caller> caller) override;

 private:
  struct Call final : iscsi::Transport {
    std::shared_ptr<forward::Caller> caller;
    SimulatedConnection* far = nullptr;
    bool connected = false;
    bool closed = false;
    void schedule_flush() override {}
    void close(bool) override { closed = true; }
    void authenticated() override {}
    void over() override {}
  };
  bool carry(Call& call);
  void receive(Call& call, ByteView bytes);
  bool answer_dials();

  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<std::weak_ptr<lun::Nexus>> nexuses_;
  std::vector<std::shared_ptr<ForwardedCommand>> commands_;  // none is destroyed before its nexus
  unsigned dialled_ = 0;
  uint64_t sent_ = 0;
};

}  // namespace sluice::simulation
