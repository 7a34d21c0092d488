// A small initiator for tests: builds request PDUs and parses answers. It is byte-exact and
// enforces no rules: tests set every field that they need.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pdu/bhs.h"
#include "simulation/simulated_gateway.h"

namespace sluice::simulation {

struct Answer {
  pdu::Bhs header;
  std::vector<uint8_t> data;
};

class Initiator {
 public:
  static constexpr const char* kName = "iqn.2026-11.dev.sluice.test:host";

  explicit Initiator(SimulatedConnection& connection) : connection_(connection) {}

  // The digests of PDUs sent and expected from now on.
  void set_digests(bool header, bool data) {
    header_digest_ = header;
    data_digest_ = data;
  }

  // Frames and sends one PDU.
  void send(pdu::Bhs header, ByteView data = {}, ByteView ahs = {});
  // The bytes of one PDU, for tests that corrupt them.
  std::vector<uint8_t> frame(pdu::Bhs header, ByteView data = {}, ByteView ahs = {}) const;
  // All complete PDUs that the gateway has sent since the last call.
  std::vector<Answer> answers();
  // The only answer that is expected now; aborts the test program if there is none.
  std::optional<Answer> answer();

  // Logs in directly to the operational stage. `keys`: "Key=Value" pairs in addition to names and
  // session type. Returns the last login response, and takes the sequence numbers from it.
  std::optional<Answer> login(const std::vector<std::string>& keys = {},
                              const std::string& target = SimulatedGateway::kTarget,
                              uint16_t tsih = 0);

  // A SCSI command PDU with the next CmdSN and tag.
  pdu::Bhs command(ByteView cdb, uint8_t flags, uint32_t expected_length, uint64_t lun = 0);
  pdu::Bhs request(pdu::Opcode opcode, bool immediate);
  pdu::Bhs data_out(uint32_t itt, uint32_t ttt, uint32_t data_sn, uint32_t offset,
                    bool final) const;

  // Executes one command completely: sends it, answers R2Ts with `out`, collects data-in.
  struct Outcome {
    uint8_t status = 0xff;
    uint8_t sense_key = 0;
    uint8_t asc = 0;
    uint8_t ascq = 0;
    std::vector<uint8_t> data;
    uint32_t overflow = 0;
    uint32_t underflow = 0;
    bool rejected = false;
    bool answered = false;
  };
  Outcome execute(ByteView cdb, uint32_t data_in, ByteView out = {}, uint64_t lun = 0);
  // Consumes the first unit attention of a new nexus.
  void clear_attention(uint64_t lun = 0);

  uint32_t cmd_sn = 1;
  uint32_t exp_stat_sn = 0;
  uint32_t next_itt = 0x100;
  uint16_t tsih = 0;
  uint16_t cid = 0;
  std::array<uint8_t, 6> isid{0x80, 0, 0, 0, 0, 1};
  std::string name = kName;
  SimulatedConnection& connection() { return connection_; }

 private:
  void absorb(const Answer& answer, Outcome* outcome, uint32_t itt, ByteView out);

  SimulatedConnection& connection_;
  bool header_digest_ = false;
  bool data_digest_ = false;
  std::vector<uint8_t> unread_;
};

// Common CDBs.
std::array<uint8_t, 16> read16(uint64_t lba, uint32_t blocks);
std::array<uint8_t, 16> write16(uint64_t lba, uint32_t blocks);
inline constexpr std::array<uint8_t, 6> kTestUnitReady{};
inline constexpr std::array<uint8_t, 6> kInquiry{0x12, 0, 0, 0, 0xff, 0};

}  // namespace sluice::simulation
