// PERSISTENT RESERVE OUT: its parameter list through the parser, then through a unit that two hosts
// share. An input: commands, each preceded by its length (1 byte): service action and type (1 byte
// each), then the list.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "base/log.h"
#include "scsi/pr_out_list.h"
#include "simulation/initiator.h"

namespace {

using namespace sluice;
using simulation::Initiator;

void parse(ByteView cdb, ByteView list) {
  const auto request = scsi::parse_pr_out(cdb, list);
  if (!request) return;
  scsi::TransportId id;
  for (size_t at = 0, ids = 0; request->transport_ids.next(&at, &id); ++ids) {
    if (ids > list.size()) std::abort();  // parsing makes progress
  }
}

void execute(Initiator& host, ByteView cdb, ByteView list) {
  const auto outcome = host.execute(cdb, 0, list);
  if (!outcome.answered && !list.empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  log::set_level(log::Level::kError);
  simulation::SimulatedGateway gateway;
  Initiator first(gateway.connect());
  Initiator second(gateway.connect());
  second.isid[5] = 2;
  if (!first.login() || !second.login()) std::abort();
  first.clear_attention();
  second.clear_attention();
  ByteView left(data, size);
  for (int i = 0; left.size() >= 3 && i < 32; ++i) {
    const size_t n = std::min<size_t>(left[0], left.size() - 3);
    std::vector<uint8_t> cdb(16);
    cdb[0] = 0x5f;
    cdb[1] = left[1] & 0x1f;
    cdb[2] = left[2] & 0x0f;
    store_be16(&cdb[7], static_cast<uint16_t>(n));
    const ByteView list = left.subspan(3, n);
    parse(ByteView(cdb).first(10), list);
    execute(left[1] & 0x80 ? second : first, cdb, list);
    left = left.subspan(3 + n);
  }
  const std::vector<uint8_t> read_status = {0x5e, 3, 0, 0, 0, 0, 0, 4, 0, 0};
  if (!first.execute(read_status, 1024).answered) std::abort();
  return 0;
}
