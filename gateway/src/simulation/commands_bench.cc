// Sends READs or WRITEs through the whole protocol core to a null LUN, 32 in a batch, and checks
// their answers. bench/instructions runs it under callgrind.
//
//   commands_bench read|write BYTES BATCHES
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "simulation/initiator.h"
#include "simulation/simulated_gateway.h"

namespace sluice::simulation {
namespace {

constexpr int kBatch = 32;  // commands
constexpr unsigned kLun = 1;
constexpr uint64_t kBlocks = uint64_t{1} << 17;  // of the LUN, 512 bytes each

// Whether all commands were answered with GOOD.
bool run(bool write, uint32_t bytes, int batches) {
  SimulatedGateway gateway;
  backend::Spec spec;
  spec.kind = "null";
  spec.size = kBlocks * 512;
  gateway.replace_lun(kLun, spec);
  Initiator host(gateway.connect());
  if (!host.login({"InitialR2T=No", "ImmediateData=Yes", "MaxRecvDataSegmentLength=262144"})) {
    return false;
  }
  host.clear_attention(kLun);
  const std::vector<uint8_t> data(write ? bytes : 0, 0x5a);
  const uint8_t flags = pdu::kFlagFinal | (write ? 0x20 : 0x40);
  uint64_t lba = 0;
  for (int batch = 0; batch < batches; ++batch) {
    std::vector<uint8_t> pdus;
    for (int i = 0; i < kBatch; ++i) {
      lba = (lba + 8 * 7919) % (kBlocks - 2048);
      const auto cdb = write ? write16(lba, bytes / 512) : read16(lba, bytes / 512);
      const auto pdu = host.frame(host.command(cdb, flags, bytes, kLun), data);
      pdus.insert(pdus.end(), pdu.begin(), pdu.end());
    }
    host.connection().send(pdus);
    const std::vector<Answer> answers = host.answers();
    if (answers.size() != kBatch) return false;
    for (const Answer& answer : answers) {
      if (answer.header.u8(3) != 0) return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace sluice::simulation

int main(int argc, char** argv) {
  const std::string op = argc > 1 ? argv[1] : "";
  const int bytes = argc > 2 ? std::atoi(argv[2]) : 0;
  const int batches = argc > 3 ? std::atoi(argv[3]) : 0;
  if ((op != "read" && op != "write") || bytes < 512 || bytes > 65536 || batches < 1) {
    std::fprintf(stderr, "usage: commands_bench read|write BYTES(512..65536) BATCHES\n");
    return 2;
  }
  if (sluice::simulation::run(op == "write", static_cast<uint32_t>(bytes), batches)) return 0;
  std::fprintf(stderr, "commands_bench: a command was not answered with GOOD\n");
  return 1;
}
