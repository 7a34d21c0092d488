// Responses of an NVMe drive to a backend (nvme:): Identify data through its parsers, a status
// through its translation to SCSI; then the commands for requests, with the parsed properties. An
// input: a status (2 bytes); then Identify Namespace, Identify Controller, and that of the NVM
// command set, each as the number of its nonzero bytes (1) and these (3 each: offset, 2 bytes, and
// value); then the kernel's limit in KiB (2 bytes), and requests of 9 bytes: operation and flags,
// first block (4), blocks (4).
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "passthrough/nvme_commands.h"
#include "passthrough/nvme_identify.h"
#include "passthrough/nvme_status.h"

namespace {

using namespace sluice;
using namespace sluice::passthrough;
using backend::Io;
using backend::Op;

// The size of a request: larger than one Write Zeroes, but small enough for few commands.
constexpr uint64_t kMostBytes = uint64_t{64} << 20;
constexpr uint64_t kUsualBytes = uint64_t{1} << 20;

void require(bool holds) {
  if (!holds) std::abort();
}

using Page = std::array<uint8_t, kIdentifyBytes>;

struct Script {
  ByteView left;
  uint8_t byte() {
    if (left.empty()) return 0;
    const uint8_t b = left[0];
    left = left.subspan(1);
    return b;
  }
  uint16_t pair() {
    const uint8_t high = byte();
    return static_cast<uint16_t>(high << 8 | byte());
  }
  uint32_t word() {
    const uint32_t high = pair();
    return high << 16 | pair();
  }
  Page page() {
    Page page = {};
    for (unsigned n = byte(); n > 0; --n) {
      const size_t at = pair() % page.size();
      page[at] = byte();
    }
    return page;
  }
};

// The commands cover the request exactly once, and none exceeds the drive's limits.
void cover(Io& io, const NvmeTraits& traits, bool durable) {
  const uint64_t block = traits.block_size;
  Progress progress(io);
  while (progress.done() < io.length) {
    const NvmeStep step = next_step(io, traits, durable);
    require(step.command.nsid == traits.nsid);
    require(step.bytes != 0 && step.bytes % block == 0);
    require(step.bytes <= io.length - progress.done());
    const uint64_t first = (io.offset + progress.done()) / block;
    if (step.source == Source::kList) {
      require(step.range.first == first && step.range.blocks == step.bytes / block);
    } else {
      const uint64_t lba = uint64_t{step.command.cdw11} << 32 | step.command.cdw10;
      require(lba == first && (step.command.cdw12 & 0xffff) + 1 == step.bytes / block);
    }
    if (step.source == Source::kIov || step.source == Source::kZeros) {
      require(step.bytes <= traits.max_transfer);
    }
    progress.done() += step.bytes;
  }
  if (!needs_flush(io, traits, durable)) return;
  progress.flush_next();
  require(next_step(io, traits, durable).command.opcode == 0);
}

void request(Script& script, const NvmeTraits& traits, uint64_t size) {
  const uint8_t what = script.byte();
  constexpr Op kOps[] = {Op::kRead, Op::kWrite, Op::kDiscard, Op::kWriteZeroes};
  Io io;
  io.op = kOps[what & 3];
  io.flags = (what & 4) != 0 ? backend::kIoMayUnmap : 0;
  // As in the backend: it offers no deallocation that the drive lacks.
  if (io.op == Op::kDiscard && !traits.deallocates && !traits.discards_by_zeroes) return;
  const uint64_t at = std::min<uint64_t>(script.word(), size - 1);
  const uint64_t first = (what & 8) != 0 ? size - 1 - at : at;
  const uint64_t blocks =
      std::min({uint64_t{script.word()} + 1, size - first,
                ((what & 64) != 0 ? kMostBytes : kUsualBytes) / traits.block_size});
  io.offset = first * traits.block_size;
  io.length = blocks * traits.block_size;
  Progress::begin(io);
  cover(io, traits, (what & 16) != 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Script script{{data, size}};
  const uint16_t status = script.pair();
  const NvmeOutcome outcome = outcome_of(status);
  require((outcome.error == 0) == ((status & 0x7ff) == 0));
  require((outcome.status == scsi::Status::kGood) == (outcome.error == 0));
  const Page of_namespace = script.page();
  const Page of_controller = script.page();
  const Page of_nvm = script.page();
  // Any input, of any length.
  (void)parse_namespace(ByteView(data, size));
  (void)parse_controller(ByteView(data, size));
  (void)parse_write_zeroes_limit(ByteView(data, size));
  auto controller = parse_controller(of_controller);
  require(controller.ok());
  auto space = parse_namespace(of_namespace);
  if (!space) return 0;
  require(space->blocks != 0 && space->blocks <= uint64_t{INT64_MAX} / space->block_size);
  require(space->block_size == 512 || space->block_size == 4096);
  const uint64_t kib = script.pair();
  const NvmeTraits traits =
      traits_of(1, *controller, *space, parse_write_zeroes_limit(of_nvm), kib << 10);
  require(traits.max_transfer != 0 && traits.max_transfer % traits.block_size == 0);
  require(traits.max_zeroes != 0 && traits.max_zeroes % traits.block_size == 0);
  for (int i = 0; !script.left.empty() && i < 8; ++i) request(script, traits, space->blocks);
  return 0;
}
