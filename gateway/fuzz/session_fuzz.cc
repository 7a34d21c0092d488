// Whole sessions through the simulated gateway. The first byte of an input: bit 0: log in first, to
// reach the full feature phase; bits 1-4: the negotiated values. Then steps, each with one byte for
// the action and its arguments:
//
//   0-3  raw bytes (length byte)       4-9  a PDU: header with plausible numbers, patched, data
//   10   time passes                   11   the disk holds / releases
//   12   one request is released       13   the peer stops / starts reading
//   14   another host resets LUN 0     15   the peer hangs up
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "base/log.h"
#include "simulation/initiator.h"

namespace {

using namespace sluice;
using simulation::Initiator;
using simulation::SimulatedGateway;

class Input {
 public:
  Input(const uint8_t* data, size_t size) : left_(data, size) {}
  bool empty() const { return left_.empty(); }
  uint8_t byte() {
    if (left_.empty()) return 0;
    const uint8_t b = left_[0];
    left_ = left_.subspan(1);
    return b;
  }
  ByteView bytes(size_t n) {
    const ByteView got = left_.first(std::min(n, left_.size()));
    left_ = left_.subspan(got.size());
    return got;
  }

 private:
  ByteView left_;
};

std::vector<std::string> keys(uint8_t rules) {
  std::vector<std::string> all = {"FirstBurstLength=1024", "MaxBurstLength=2048",
                                  "MaxOutstandingR2T=4"};
  all.push_back(rules & 2 ? "InitialR2T=No" : "InitialR2T=Yes");
  all.push_back(rules & 4 ? "ImmediateData=Yes" : "ImmediateData=No");
  if (rules & 8) all.push_back("HeaderDigest=CRC32C");
  if (rules & 16) all.push_back("DataDigest=CRC32C");
  return all;
}

constexpr pdu::Opcode kOpcodes[] = {
    pdu::Opcode::kScsiCommand, pdu::Opcode::kDataOut,     pdu::Opcode::kTaskManagementRequest,
    pdu::Opcode::kNopOut,      pdu::Opcode::kTextRequest, pdu::Opcode::kLogoutRequest};

// Few tags, so that PDUs refer to each other; transfer tags are small because the gateway counts
// from 1.
void send_pdu(Initiator& host, Input& in, uint8_t kind) {
  const uint8_t how = in.byte();
  pdu::Bhs h;
  h.set_opcode(kOpcodes[kind % std::size(kOpcodes)]);
  if (how & 1) h.put8(0, h.u8(0) | 0x40);
  h.set_flags(in.byte());
  h.set_itt(in.byte() % 8);
  h.put32(20, how & 2 ? pdu::kReservedTag : in.byte() % 32);
  const bool numbered = h.opcode() != pdu::Opcode::kDataOut;
  if (numbered) h.put32(24, host.cmd_sn + (how & 4 ? in.byte() % 8 : 0));
  if (numbered && !(how & 5)) ++host.cmd_sn;
  if (h.opcode() == pdu::Opcode::kScsiCommand) {
    h.put32(20, uint32_t{in.byte()} * 128);
    const ByteView cdb = in.bytes(16);
    std::copy(cdb.begin(), cdb.end(), h.data() + 32);
  } else if (h.opcode() == pdu::Opcode::kDataOut) {
    h.put32(36, in.byte() % 4);
    h.put32(40, uint32_t{in.byte()} * 128);
  } else {
    h.put32(32, host.cmd_sn - in.byte() % 8);
  }
  if (how & 8) h.put8(in.byte() % pdu::kBhsSize, in.byte());
  std::vector<uint8_t> data;
  if (how & 16) data.assign(size_t{in.byte()} * 16, 0x42);
  if (how & 32) {
    const ByteView text = in.bytes(in.byte());
    data.insert(data.end(), text.begin(), text.end());
  }
  std::vector<uint8_t> ahs;
  if (how & 64) {
    const ByteView some = in.bytes(4 * (in.byte() % 16));
    ahs.assign(some.begin(), some.end());
    ahs.resize((ahs.size() + 3) & ~size_t{3});
  }
  host.send(h, data, ahs);
}

void reset(Initiator& other) {
  pdu::Bhs h = other.request(pdu::Opcode::kTaskManagementRequest, true);
  h.set_flags(pdu::kFlagFinal | static_cast<uint8_t>(pdu::TaskFunction::kLogicalUnitReset));
  other.send(h);
}

void step(SimulatedGateway& gateway, Initiator& host, Initiator& other, Input& in) {
  const uint8_t what = in.byte() % 16;
  if (what < 4) return host.connection().send(in.bytes(in.byte()), what == 0 ? SIZE_MAX : what * 7);
  if (what < 10) return send_pdu(host, in, static_cast<uint8_t>(what - 4));
  switch (what) {
    case 10:
      return gateway.advance((1 + in.byte() % 16) * limits::kTick);
    case 11:
      return gateway.disk().hold(in.byte() & 1);
    case 12:
      gateway.disk().release_one(in.byte() & 1 ? -EIO : 0);
      return gateway.run();
    case 13:
      host.connection().set_reading(in.byte() & 1);
      return gateway.run();
    case 14:
      return reset(other);
    default:
      return host.connection().hang_up();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  log::set_level(log::Level::kError);
  if (size == 0) return 0;
  Input in(data, size);
  const uint8_t rules = in.byte();
  iscsi::Settings settings;
  settings.command_window = 8;
  SimulatedGateway gateway(settings);
  Initiator host(gateway.connect());
  Initiator other(gateway.connect());
  other.isid[5] = 9;
  if (!other.login()) std::abort();
  other.clear_attention();
  if (rules & 1) {
    if (!host.login(keys(rules))) std::abort();
    host.set_digests(rules & 8, rules & 16);
    if (!(rules & 32)) host.clear_attention();
  }
  for (int steps = 0; !in.empty() && steps < 200; ++steps) step(gateway, host, other, in);

  // For every input: all objects are released, and the other host is not affected.
  if (!host.connection().closed()) host.connection().hang_up();
  gateway.disk().hold(false);
  gateway.disk().release_all();
  gateway.run();
  if (!host.connection().ended()) std::abort();
  other.answers();
  if (!other.connection().closed() && !other.execute(simulation::kInquiry, 255).answered) {
    std::abort();
  }
  if (!other.connection().closed()) other.connection().hang_up();
  if (gateway.buffers().in_use() != 0) std::abort();
  return 0;
}
