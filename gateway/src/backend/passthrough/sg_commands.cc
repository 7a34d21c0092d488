#include "passthrough/sg_commands.h"

#include <algorithm>

#include "backend/zeros.h"

namespace sluice::passthrough {
namespace {

using backend::Io;
using backend::Op;

// What the kernel's own disk driver waits: R/W, SYNCHRONIZE CACHE, WRITE SAME and UNMAP.
constexpr uint32_t kTimeout = 30'000;         // milliseconds
constexpr uint32_t kFlushTimeout = 60'000;    // milliseconds
constexpr uint32_t kZeroesTimeout = 120'000;  // milliseconds

constexpr uint64_t kMostTransfer = uint64_t{1} << 20;  // bytes
constexpr uint64_t kPage = 4096;

constexpr uint8_t kFua = 0x08;
constexpr uint8_t kUnmapBit = 0x08;                   // of WRITE SAME
constexpr uint64_t kMostZeroes = uint64_t{32} << 20;  // bytes of one WRITE SAME or UNMAP

void set_length(SgStep& step, uint8_t length, uint32_t timeout) {
  step.cdb_length = length;
  step.timeout = timeout;
}

// READ and WRITE: (10) wherever it reaches, for some devices know nothing else.
void transfer(SgStep& step, const Io& io, const SgTraits& traits, Source source, uint64_t most,
              bool write, bool fua) {
  const uint64_t block = traits.medium.block_size;
  step.bytes = std::min(io.length - io.priv.a, most / block * block);
  step.data = static_cast<uint32_t>(step.bytes);
  step.source = source;
  step.to_device = write;
  const uint64_t first = (io.offset + io.priv.a) / block;
  const uint64_t count = step.bytes / block;
  step.cdb[1] = fua ? kFua : 0;
  if (first + count <= UINT32_MAX && count <= UINT16_MAX) {
    step.cdb[0] = write ? 0x2a : 0x28;
    store_be32(&step.cdb[2], static_cast<uint32_t>(first));
    store_be16(&step.cdb[7], static_cast<uint16_t>(count));
    return set_length(step, 10, kTimeout);
  }
  step.cdb[0] = write ? 0x8a : 0x88;
  store_be64(&step.cdb[2], first);
  store_be32(&step.cdb[10], static_cast<uint32_t>(count));
  set_length(step, 16, kTimeout);
}

// At most as many blocks as the device takes at once; 0: it doesn't say.
uint64_t ranged(const Io& io, const SgTraits& traits, uint64_t most) {
  const uint64_t block = traits.medium.block_size;
  const uint64_t limit = most == 0 ? UINT16_MAX : std::min(most, kMostZeroes / block);
  return std::min((io.length - io.priv.a) / block, std::max<uint64_t>(1, limit));
}

void write_same(SgStep& step, const Io& io, const SgTraits& traits) {
  const uint64_t block = traits.medium.block_size;
  const uint64_t count = ranged(io, traits, traits.medium.max_write_same);
  const bool unmap = io.op == Op::kDiscard || (io.flags & backend::kIoMayUnmap) != 0;
  step.cdb[0] = 0x93;
  step.cdb[1] = unmap && traits.discards_by_write_same ? kUnmapBit : 0;
  store_be64(&step.cdb[2], (io.offset + io.priv.a) / block);
  store_be32(&step.cdb[10], static_cast<uint32_t>(count));
  step.bytes = count * block;
  step.data = static_cast<uint32_t>(block);
  step.source = Source::kZeros;
  step.to_device = true;
  set_length(step, 16, kZeroesTimeout);
}

void unmap(SgStep& step, const Io& io, const SgTraits& traits) {
  const uint64_t block = traits.medium.block_size;
  const uint64_t count = ranged(io, traits, traits.medium.max_unmap);
  step.cdb[0] = 0x42;
  store_be16(&step.cdb[7], static_cast<uint16_t>(step.list.size()));
  store_be16(&step.list[0], 22);
  store_be16(&step.list[2], 16);
  store_be64(&step.list[8], (io.offset + io.priv.a) / block);
  store_be32(&step.list[16], static_cast<uint32_t>(count));
  step.bytes = count * block;
  step.data = static_cast<uint32_t>(step.list.size());
  step.source = Source::kList;
  step.to_device = true;
  set_length(step, 10, kZeroesTimeout);
}

uint8_t length_of(uint8_t opcode) {  // by its GROUP CODE: SPC-5, OPERATION CODE field
  if (opcode < 0x20) return 6;
  if (opcode < 0x60) return 10;
  return opcode >= 0xa0 && opcode < 0xc0 ? 12 : 16;
}

void pass(SgStep& step, const Io& io) {
  step.cdb = io.cdb;
  step.bytes = io.length;
  step.data = static_cast<uint32_t>(io.length);
  step.source = io.length > 0 ? Source::kIov : Source::kNone;
  set_length(step, length_of(io.cdb[0]), kFlushTimeout);
}

void synchronize(SgStep& step) {
  step.cdb[0] = 0x35;  // all blocks
  set_length(step, 10, kFlushTimeout);
}

bool forced(const SgTraits& traits, bool durable) {
  return durable && traits.medium.volatile_cache && traits.medium.fua;
}

}  // namespace

SgTraits traits_of(const ScsiMedium& medium, uint64_t queue) {
  SgTraits traits;
  traits.medium = medium;
  uint64_t most = kMostTransfer;
  if (queue != 0) most = std::min(most, queue);
  if (medium.max_transfer != 0) most = std::min(most, medium.max_transfer * medium.block_size);
  const uint64_t unit = most < kPage ? medium.block_size : kPage;
  traits.max_transfer = std::max(most / unit * unit, unit);
  traits.discards_by_write_same = medium.thin && medium.reads_zeros && medium.write_same_unmap;
  return traits;
}

SgStep next_step(Io& io, const SgTraits& traits, bool durable, bool may_write_same) {
  SgStep step;
  if (io.op == Op::kCdb) {
    pass(step, io);
  } else if (Progress(io).stage() == Progress::Stage::kFlush) {
    synchronize(step);
  } else if (io.op == Op::kRead) {
    transfer(step, io, traits, Source::kIov, traits.max_transfer, false, false);
  } else if (io.op == Op::kWrite) {
    transfer(step, io, traits, Source::kIov, traits.max_transfer, true, forced(traits, durable));
  } else if (io.op == Op::kDiscard && !traits.discards_by_write_same) {
    unmap(step, io, traits);
  } else if (may_write_same) {
    write_same(step, io, traits);
  } else {
    transfer(step, io, traits, Source::kZeros, std::min(traits.max_transfer, backend::kZerosSize),
             true, forced(traits, durable));
  }
  return step;
}

bool needs_flush(const Io& io, const SgTraits& traits, bool durable) {
  if (!durable || !traits.medium.volatile_cache) return false;
  if (io.op == Op::kWrite) return !traits.medium.fua;
  return io.op == Op::kDiscard || io.op == Op::kWriteZeroes;
}

}  // namespace sluice::passthrough
