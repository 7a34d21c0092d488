// CDBs and their data through a whole session to a memory LUN. An input is a list of commands: CDB
// length (1 byte, up to 64; above 16 it goes in an AHS), the CDB, direction (1 byte: bit 0 write),
// data length (2 bytes, big-endian, of which up to 4 KiB stand in the input; the rest repeats).
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "base/log.h"
#include "simulation/initiator.h"

namespace {

using namespace sluice;
using simulation::Initiator;

struct Script {
  ByteView left;
  ByteView take(size_t n) {
    const ByteView got = left.first(std::min(n, left.size()));
    left = left.subspan(got.size());
    return got;
  }
  uint8_t byte() {
    const ByteView b = take(1);
    return b.empty() ? uint8_t{0} : b[0];
  }
};

// Sends a command, answers its R2Ts, and checks that it ends with a status or a Reject.
void run(Initiator& host, ByteView cdb, uint8_t flags, const std::vector<uint8_t>& data,
         uint32_t expected) {
  const pdu::Bhs h = host.command(cdb, flags, expected, 0);
  std::vector<uint8_t> ahs;
  if (cdb.size() > 16) {
    ahs.resize(4 + pdu::padded(static_cast<uint32_t>(cdb.size() - 16)));
    store_be16(ahs.data(), static_cast<uint16_t>(cdb.size() - 16 + 1));
    ahs[2] = 1;
    std::copy(cdb.begin() + 16, cdb.end(), ahs.begin() + 4);
  }
  host.send(h, {}, ahs);
  bool ended = false;
  for (auto got = host.answers(); !got.empty(); got = host.answers()) {
    for (const simulation::Answer& a : got) {
      const uint32_t offset = a.header.u32(40);
      if (a.header.opcode() != pdu::Opcode::kR2t) {
        ended |= a.header.opcode() != pdu::Opcode::kDataIn || a.header.flags() & pdu::kFlagStatus;
        continue;
      }
      if (uint64_t{offset} + a.header.u32(44) > data.size()) std::abort();
      host.send(host.data_out(h.itt(), a.header.target_transfer_tag(), 0, offset, true),
                ByteView(data).subspan(offset, a.header.u32(44)));
    }
  }
  if (!ended) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  log::set_level(log::Level::kError);
  simulation::SimulatedGateway gateway;
  Initiator host(gateway.connect());
  if (!host.login({"ImmediateData=No"})) std::abort();
  host.clear_attention();
  host.clear_attention(1);
  Script script{{data, size}};
  for (int i = 0; !script.left.empty() && i < 32; ++i) {
    std::vector<uint8_t> cdb(1 + script.byte() % 64);
    const ByteView given = script.take(cdb.size());
    std::copy(given.begin(), given.end(), cdb.begin());
    cdb.resize(std::max<size_t>(cdb.size(), 16));
    const uint8_t how = script.byte();
    const auto length = static_cast<uint32_t>(script.byte() << 8 | script.byte());
    std::vector<uint8_t> out(how & 1 ? length : 0);
    const ByteView start = script.take(std::min<size_t>(out.size(), 4096));
    for (size_t at = 0; !start.empty() && at < out.size(); ++at) out[at] = start[at % start.size()];
    const auto flags =
        static_cast<uint8_t>(pdu::kFlagFinal | 1 | (how & 1 ? pdu::kFlagWrite : pdu::kFlagRead));
    run(host, cdb, flags, out, length);
  }
  return 0;
}
