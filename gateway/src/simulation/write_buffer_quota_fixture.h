// Hosts that write more than the memory permits.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "scsi/sense.h"
#include "simulation/initiator.h"

namespace sluice::simulation {

inline constexpr uint32_t kBytes = 4u << 20;  // bytes of one write
inline constexpr uint32_t kLarge = limits::kMaxTransferBytes;
inline constexpr uint32_t kPiece = 256u << 10;
inline constexpr uint64_t kHung = 0;  // LUN numbers
inline constexpr uint64_t kLive = 1;

// A host that writes to one LUN without waiting for responses.
struct Writer {
  explicit Writer(SimulatedConnection& connection) : host(connection) {}
  Initiator host;
  std::deque<pdu::Bhs> asked;
  unsigned asked_for = 0;          // number of R2Ts so far
  std::set<uint32_t> asked_tasks;  // their tags
  unsigned good = 0;
  unsigned full = 0;  // number of TASK SET FULL

  uint32_t start(uint64_t lun, uint32_t bytes, ByteView immediate = {}) {
    const auto header =
        host.command(write16(0, bytes / 512), pdu::kFlagFinal | pdu::kFlagWrite | 1, bytes, lun);
    host.send(header, immediate);
    return header.itt();
  }
  void look() {
    for (const Answer& a : host.answers()) {
      if (a.header.opcode() == pdu::Opcode::kR2t) {
        asked.push_back(a.header);
        asked_tasks.insert(a.header.itt());
        ++asked_for;
      }
      if (a.header.opcode() != pdu::Opcode::kScsiResponse) continue;
      const auto status = static_cast<scsi::Status>(a.header.data()[3]);
      if (status == scsi::Status::kGood) ++good;
      if (status == scsi::Status::kTaskSetFull) ++full;
    }
  }
  // Sends the data for the oldest R2T. False: none.
  bool answer() {
    look();
    if (asked.empty()) return false;
    const pdu::Bhs r2t = asked.front();
    asked.pop_front();
    const std::vector<uint8_t> data(r2t.u32(44), 1);
    pdu::Bhs h = host.data_out(r2t.itt(), r2t.target_transfer_tag(), 0, r2t.u32(40), true);
    h.set_lun(r2t.lun());  // RFC 7143 §11.7.4
    host.send(h, data);
    return true;
  }
};

class WriteBufferQuotaTest : public testing::Test {
 protected:
  Writer& log_in(bool immediate = false) {
    const auto n = static_cast<uint8_t>(writers_.size() + 1);
    writers_.push_back(std::make_unique<Writer>(gateway_.connect()));
    Writer& w = *writers_.back();
    w.host.isid[5] = n;
    w.host.name += std::to_string(n);
    EXPECT_TRUE(w.host.login({"MaxBurstLength=262144", "FirstBurstLength=262144",
                              immediate ? "ImmediateData=Yes" : "ImmediateData=No"}));
    w.host.clear_attention(kHung);
    w.host.clear_attention(kLive);
    return w;
  }
  void answer_all() {
    for (bool any = true; any;) {
      any = false;
      for (const auto& w : writers_) any = w->answer() || any;
    }
  }
  bool writes(Writer& w, uint64_t lun) {
    return w.host.execute(write16(0, kBytes / 512), 0, std::vector<uint8_t>(kBytes, 2), lun)
               .status == 0;
  }
  // The hung unit completes all waiting requests, and later ones immediately.
  void release_disk() {
    gateway_.disk(kHung).hold(false);
    gateway_.disk(kHung).release_all();
    gateway_.run();
    answer_all();
  }
  // Before any login: makes a transfer of the largest size fit.
  void grow(unsigned lun) {
    backend::Spec spec;
    spec.kind = "memory";
    spec.size = kLarge;
    gateway_.replace_lun(lun, spec);
  }
  // Occupies this much of the reactor's memory.
  void occupy(size_t bytes) {
    for (size_t i = 0; i < bytes; i += BufferPool::kLargest) {
      occupied_.push_back(pool().allocate(BufferPool::kLargest));
    }
  }
  // Three sessions are admitted to write to one unit, and send nothing yet.
  size_t reserve_by_write() {
    for (unsigned i = 0; i < 3; ++i) {
      Writer& w = log_in();
      for (unsigned n = 0; n < 8; ++n) w.start(kHung, kBytes);
    }
    return pool().available() - gateway_.shard().write_quota.free();
  }
  // Hosts that read as much as possible at once, and may not read the answers.
  void read(unsigned hosts, bool take) {
    gateway_.disk(kLive).hold(true);  // so that data is read into buffers, not lent
    for (unsigned i = 0; i < hosts; ++i) {
      Initiator& host = log_in().host;
      host.connection().set_reading(take);
      host.send(host.command(read16(0, kLarge / 512), pdu::kFlagFinal | pdu::kFlagRead | 1, kLarge,
                             kLive));
    }
  }
  BufferPool& pool() { return gateway_.buffers(); }

  SimulatedGateway gateway_;
  std::vector<std::unique_ptr<Writer>> writers_;
  std::vector<BufferRef> occupied_;
};

}  // namespace sluice::simulation
