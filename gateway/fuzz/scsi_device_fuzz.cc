// Responses of a SCSI device to a backend (sg:): INQUIRY, capacity, vital product data, mode page
// and sense data through their parsers; then the CDBs for requests, with the parsed properties. An
// input is a list of responses in the order of SgDevice::look(), each its length (1 byte) and
// bytes: INQUIRY, READ CAPACITY(16), the same of (10), VPD 00h, B0h, B1h, B2h, MODE SENSE(10),
// sense data; then host status and status (1 byte each), the driver's limit in KiB (2 bytes), and
// requests of 9 bytes: operation and flags, first block (4), blocks (4).
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "passthrough/scsi_medium.h"
#include "passthrough/sg_answer.h"
#include "passthrough/sg_commands.h"

namespace {

using namespace sluice;
using namespace sluice::passthrough;
using backend::Io;
using backend::Op;

// The size of a request: larger than one WRITE SAME or UNMAP, but small enough for few commands.
constexpr uint64_t kMostBytes = uint64_t{64} << 20;
constexpr uint64_t kUsualBytes = uint64_t{1} << 20;

void require(bool holds) {
  if (!holds) std::abort();
}

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
  uint32_t word() {
    const auto high = static_cast<uint32_t>(byte() << 8 | byte());
    return high << 16 | static_cast<uint32_t>(byte() << 8 | byte());
  }
  ByteView answer() { return take(byte()); }
};

struct Range {
  uint64_t first = 0;
  uint64_t count = 0;
};

// For a CDB that transfers or deallocates blocks.
Range range_of(const SgStep& step) {
  switch (step.cdb[0]) {
    case 0x28:
    case 0x2a:
      require(step.cdb_length == 10);
      return {load_be32(&step.cdb[2]), load_be16(&step.cdb[7])};
    case 0x88:
    case 0x8a:
    case 0x93:
      require(step.cdb_length == 16);
      return {load_be64(&step.cdb[2]), load_be32(&step.cdb[10])};
    default:
      require(step.cdb[0] == 0x42 && step.cdb_length == 10 && step.data == step.list.size());
      return {load_be64(&step.list[8]), load_be32(&step.list[16])};
  }
}

// The commands cover the request exactly once, and none exceeds the device's limits.
void cover(Io& io, const SgTraits& traits, bool durable, bool write_same) {
  const uint64_t block = traits.medium.block_size;
  Progress progress(io);
  while (progress.done() < io.length) {
    const SgStep step = next_step(io, traits, durable, write_same);
    require(step.bytes != 0 && step.bytes % block == 0);
    require(step.bytes <= io.length - progress.done());
    const Range range = range_of(step);
    require(range.first == (io.offset + progress.done()) / block);
    require(range.count == step.bytes / block);
    const uint64_t most = traits.medium.max_transfer * block;
    const bool moves = step.cdb[0] != 0x93 && step.cdb[0] != 0x42;
    if (moves) require(step.data == step.bytes && (most == 0 || step.data <= most));
    progress.done() += step.bytes;
  }
  if (!needs_flush(io, traits, durable)) return;
  progress.flush_next();
  require(next_step(io, traits, durable, write_same).cdb[0] == 0x35);
}

void request(Script& script, const SgTraits& traits) {
  const ScsiMedium& medium = traits.medium;
  const uint8_t what = script.byte();
  constexpr Op kOps[] = {Op::kRead, Op::kWrite, Op::kDiscard, Op::kWriteZeroes};
  Io io;
  io.op = kOps[what & 3];
  io.flags = (what & 4) != 0 ? backend::kIoMayUnmap : 0;
  // The 32 bits count from the front or from the end.
  const uint64_t at = std::min<uint64_t>(script.word(), medium.blocks - 1);
  const uint64_t first = (what & 8) != 0 ? medium.blocks - 1 - at : at;
  const uint64_t blocks =
      std::min({uint64_t{script.word()} + 1, medium.blocks - first,
                ((what & 64) != 0 ? kMostBytes : kUsualBytes) / medium.block_size});
  io.offset = first * medium.block_size;
  io.length = blocks * medium.block_size;
  Progress::begin(io);
  cover(io, traits, (what & 16) != 0, (what & 32) != 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Script script{{data, size}};
  ScsiMedium medium;
  (void)parse_inquiry(script.answer());
  const ByteView capacity16 = script.answer();
  const ByteView capacity10 = script.answer();
  const bool told = parse_capacity16(capacity16, medium).ok();
  const bool served = told || parse_capacity10(capacity10, medium).ok();
  const ByteView pages = script.answer();
  (void)lists_page(pages, 0xb0);
  parse_block_limits(script.answer(), medium);
  parse_characteristics(script.answer(), medium);
  parse_provisioning(script.answer(), medium);
  parse_caching(script.answer(), medium);
  const ByteView sense = script.answer();
  sg_io_hdr header = {};
  header.host_status = script.byte();
  header.status = script.byte();
  const SgOutcome outcome = outcome_of(header, sense);
  require(outcome.error >= 0);
  require(!outcome.retry || outcome.error != 0);
  if (!served) return 0;
  require(medium.blocks != 0 && medium.blocks <= uint64_t{INT64_MAX} / medium.block_size);
  require(medium.block_size == 512 || medium.block_size == 4096);
  require(discard_granularity(medium) % medium.block_size == 0);
  const auto kib = static_cast<uint64_t>(script.byte() << 8 | script.byte());
  const SgTraits traits = traits_of(medium, kib << 10);
  require(traits.max_transfer != 0 && traits.max_transfer % medium.block_size == 0);
  for (int i = 0; !script.left.empty() && i < 8; ++i) request(script, traits);
  return 0;
}
