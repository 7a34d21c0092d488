#include "passthrough/nvme_commands.h"

#include <algorithm>

#include "backend/zeros.h"

namespace sluice::passthrough {
namespace {

using backend::Io;
using backend::Op;

enum Opcode : uint8_t {
  kFlush = 0x00,
  kWrite = 0x01,
  kRead = 0x02,
  kWriteZeroes = 0x08,
  kDatasetManagement = 0x09,
};

constexpr uint32_t kFua = 1u << 30;                    // CDW12
constexpr uint32_t kDeallocate = 1u << 25;             // CDW12 of Write Zeroes
constexpr uint32_t kRangeDeallocate = 1u << 2;         // CDW11 of Dataset Management
constexpr uint64_t kMostTransfer = uint64_t{1} << 20;  // bytes
constexpr uint64_t kMostZeroes = uint64_t{32} << 20;   // bytes
constexpr uint64_t kPage = 4096;
constexpr uint64_t kMostBlocks = 65536;  // NLB has 16 bits and is 0's based
// A drive may take its time to deallocate or to write back a cache.
constexpr uint32_t kTimeout = 30'000;      // milliseconds
constexpr uint32_t kLongTimeout = 60'000;  // milliseconds

void set_blocks(NvmeStep& step, const Io& io, const NvmeTraits& traits, uint64_t most,
                uint32_t flags) {
  const uint64_t block = traits.block_size;
  const uint64_t left = io.length - io.priv.a;
  step.bytes = std::min({left, most / block * block, kMostBlocks * block});
  const uint64_t first = (io.offset + io.priv.a) / block;
  step.command.cdw10 = static_cast<uint32_t>(first);
  step.command.cdw11 = static_cast<uint32_t>(first >> 32);
  step.command.cdw12 = static_cast<uint32_t>(step.bytes / block - 1) | flags;
}

void zeroes(NvmeStep& step, const Io& io, const NvmeTraits& traits, uint32_t fua) {
  if (traits.writes_zeroes) {
    const bool deallocate = io.op == Op::kDiscard || (io.flags & backend::kIoMayUnmap) != 0;
    step.command.opcode = kWriteZeroes;
    step.command.timeout_ms = kLongTimeout;
    return set_blocks(step, io, traits, traits.max_zeroes,
                      fua | (deallocate && traits.discards_by_zeroes ? kDeallocate : 0));
  }
  step.command.opcode = kWrite;
  step.source = Source::kZeros;
  set_blocks(step, io, traits, std::min(traits.max_transfer, backend::kZerosSize), fua);
}

void deallocate(NvmeStep& step, const Io& io, const NvmeTraits& traits) {
  const uint64_t blocks = (io.length - io.priv.a) / traits.block_size;
  step.command.opcode = kDatasetManagement;
  step.command.timeout_ms = kLongTimeout;
  step.command.cdw10 = 0;  // one range
  step.command.cdw11 = kRangeDeallocate;
  step.source = Source::kList;
  step.range.blocks = static_cast<uint32_t>(std::min<uint64_t>(blocks, UINT32_MAX));
  step.range.first = (io.offset + io.priv.a) / traits.block_size;
  step.bytes = uint64_t{step.range.blocks} * traits.block_size;
}

}  // namespace

NvmeTraits traits_of(uint32_t nsid, const NvmeController& controller, const NvmeNamespace& space,
                     uint64_t zeroes_limit, uint64_t queue) {
  NvmeTraits traits;
  traits.nsid = nsid;
  uint64_t most = std::min(kMostTransfer, std::max(queue, kPage));
  if (controller.max_transfer != 0) most = std::min(most, controller.max_transfer);
  traits.max_transfer = most / kPage * kPage;
  traits.max_zeroes = zeroes_limit != 0 ? std::min(zeroes_limit, kMostZeroes) : kMostZeroes;
  traits.block_size = space.block_size;
  traits.volatile_cache = controller.volatile_cache;
  traits.deallocates = controller.deallocates;
  traits.writes_zeroes = controller.writes_zeroes;
  traits.discards_by_zeroes =
      space.reads_zeros && space.zeroes_deallocate && controller.writes_zeroes;
  return traits;
}

NvmeStep next_step(Io& io, const NvmeTraits& traits, bool durable) {
  NvmeStep step;
  step.command.nsid = traits.nsid;
  step.command.timeout_ms = kTimeout;
  const uint32_t fua = durable && traits.volatile_cache ? kFua : 0;
  if (Progress(io).stage() == Progress::Stage::kFlush) {
    step.command.opcode = kFlush;
    step.command.timeout_ms = kLongTimeout;
  } else if (io.op == Op::kRead) {
    step.command.opcode = kRead;
    step.source = Source::kIov;
    // FUA on a read would only make the drive write its cache back first.
    set_blocks(step, io, traits, traits.max_transfer, 0);
  } else if (io.op == Op::kWrite) {
    step.command.opcode = kWrite;
    step.source = Source::kIov;
    set_blocks(step, io, traits, traits.max_transfer, fua);
  } else if (io.op == Op::kWriteZeroes || traits.discards_by_zeroes) {
    zeroes(step, io, traits, fua);
  } else {
    deallocate(step, io, traits);
  }
  return step;
}

bool needs_flush(const Io& io, const NvmeTraits& traits, bool durable) {
  return io.op == Op::kDiscard && !traits.discards_by_zeroes && durable && traits.volatile_cache;
}

}  // namespace sluice::passthrough
