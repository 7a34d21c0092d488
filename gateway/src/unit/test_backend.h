// A backend for tests of this room: a vector that can delay requests, fail them, shorten them and
// report any Info.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "backend/backend.h"

namespace sluice::lun {

class TestBackend : public backend::Backend {
 public:
  explicit TestBackend(uint64_t size) : data(size), allocated(size / 4096 + 1) {
    information.discard_granularity = 4096;
    information.discard_zeroes = true;
    information.thin = true;
  }

  const backend::Info& info() const override { return information; }
  uint64_t size_bytes() const override { return claimed_size ? claimed_size : data.size(); }
  const uint8_t* borrow(uint64_t offset, uint64_t) const override {
    return lends ? data.data() + offset : nullptr;
  }
  bool write_cache() const override { return cache; }
  Result<void> set_write_cache(bool on) override {
    if (!cache_changeable) return Error{"fixed"};
    cache = on;
    return {};
  }
  uint64_t free_bytes() const override { return free; }
  bool run_query(AioOp& op, Aio& aio) override {
    if (!holds_queries) return Backend::run_query(op, aio);
    held_query = &op;
    return false;
  }
  // The medium answers the query that waits.
  void answer_query() {
    AioOp& op = *std::exchange(held_query, nullptr);
    op.call(op);
    op.done(op, 0);
  }
  Result<backend::Extent> allocation(uint64_t offset, uint64_t limit) const override {
    const bool first = allocated[offset / 4096];
    uint64_t end = offset / 4096;
    while (end * 4096 < offset + limit && allocated[end] == first) ++end;
    return backend::Extent{std::min(end * 4096 - offset, limit), first};
  }
  Result<void> resize(uint64_t size) override {
    if (size < data.size()) return Error{"shrinks"};
    data.resize(size);
    allocated.resize(size / 4096 + 1);
    return {};
  }
  Result<void> check() override {
    if (gone) return Error{"gone"};
    return {};
  }

  bool submit(backend::Io& io, Aio&) override {
    submitted.push_back({io.op, io.flags, io.offset, io.length, io.iovcnt});
    if (holds) {
      held.push_back(&io);
      return false;
    }
    execute(io);
    return true;
  }

  // Executes the oldest delayed request.
  void release_one() {
    backend::Io* io = held.front();
    held.pop_front();
    execute(*io);
    io->done(*io);
  }
  // Executes the latest delayed request.
  void release_last() {
    backend::Io* io = held.back();
    held.pop_back();
    execute(*io);
    io->done(*io);
  }
  void release_all() {
    while (!held.empty()) release_one();
  }

  void fill(uint64_t offset, uint64_t length, uint8_t value) {
    std::fill_n(data.begin() + static_cast<ptrdiff_t>(offset), length, value);
  }
  bool all(uint64_t offset, uint64_t length, uint8_t value) const {
    const auto begin = data.begin() + static_cast<ptrdiff_t>(offset);
    return std::all_of(begin, begin + static_cast<ptrdiff_t>(length),
                       [value](uint8_t b) { return b == value; });
  }

  struct Record {
    backend::Op op;
    uint8_t flags;
    uint64_t offset;
    uint64_t length;
    uint32_t iovcnt;
  };

  std::vector<uint8_t> data;
  std::vector<bool> allocated;  // per 4096 bytes
  uint64_t claimed_size = 0;    // bytes; 0: those of `data`
  backend::Info information;
  bool lends = false;
  bool cache = false;
  bool cache_changeable = true;
  bool gone = false;
  bool holds = false;
  uint64_t free = UINT64_MAX;  // bytes
  bool holds_queries = false;
  AioOp* held_query = nullptr;
  int64_t fail_with = 0;               // negative errno for every request
  backend::Io::Answer answer{};        // status and sense data for it
  std::vector<uint8_t> cdb_data;       // data that a kCdb returns
  uint64_t most_per_io = UINT64_MAX;   // bytes, of reads and writes
  std::array<uint8_t, 16> last_cdb{};  // of a kCdb
  std::deque<backend::Io*> held;
  std::vector<Record> submitted;

 private:
  void execute(backend::Io& io) {
    if (fail_with < 0) {
      io.result = fail_with;
      io.answer = answer;
      return;
    }
    io.result = 0;
    const bool write = io.op == backend::Op::kWrite;
    if (write || io.op == backend::Op::kRead) {
      const uint64_t total = std::min(io.length, most_per_io);
      for (uint64_t done = 0, i = 0; done < total; ++i) {
        const uint64_t part = std::min<uint64_t>(io.iov[i].iov_len, total - done);
        uint8_t* at = data.data() + io.offset + done;
        if (write) {
          std::memcpy(at, io.iov[i].iov_base, part);
        } else {
          std::memcpy(io.iov[i].iov_base, at, part);
        }
        done += part;
      }
      io.result = static_cast<int64_t>(total);
      if (write) mark(io.offset, total, true);
    } else if (io.op == backend::Op::kCdb) {
      last_cdb = io.cdb;
      const size_t size = std::min<size_t>(cdb_data.size(), io.length);
      if (size > 0) std::memcpy(io.iov[0].iov_base, cdb_data.data(), size);
      io.result = static_cast<int64_t>(size);
    } else if (io.op != backend::Op::kFlush && io.op != backend::Op::kCheckFence) {
      fill(io.offset, io.length, 0);
      if (io.op == backend::Op::kDiscard) mark(io.offset, io.length, false);
    }
  }
  void mark(uint64_t offset, uint64_t length, bool value) {
    for (uint64_t page = offset / 4096; page * 4096 < offset + length; ++page) {
      allocated[page] = value;
    }
  }
};

}  // namespace sluice::lun
