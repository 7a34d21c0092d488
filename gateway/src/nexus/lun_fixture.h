// A target with one unit and any number of nexuses, on reactors that the test runs.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "nexus/exports.h"
#include "nexus/nexus.h"
#include "scsi/report_luns.h"
#include "unit/latency_log.h"
#include "unit/test_backend.h"
#include "unit/test_reactors.h"
#include "unit/unit.h"

namespace sluice::lun {

using Bytes = std::vector<uint8_t>;

inline void put_be(Bytes& cdb, size_t at, size_t width, uint64_t value) {
  for (size_t i = 0; i < width; ++i) {
    cdb[at + i] = static_cast<uint8_t>(value >> (8 * (width - 1 - i)));
  }
}

// A CDB of one of the 16-byte commands on blocks: opcode, flags, LBA at 2, count at 10.
inline Bytes cdb16(uint8_t opcode, uint64_t lba, uint32_t blocks, uint8_t flags = 0) {
  Bytes cdb(16);
  cdb[0] = opcode;
  cdb[1] = flags;
  put_be(cdb, 2, 8, lba);
  put_be(cdb, 10, 4, blocks);
  return cdb;
}

inline Bytes read16(uint64_t lba, uint32_t blocks) { return cdb16(0x88, lba, blocks); }
inline Bytes write16(uint64_t lba, uint32_t blocks) { return cdb16(0x8a, lba, blocks); }
inline Bytes test_unit_ready() { return Bytes(6); }
inline Bytes inquiry(uint8_t allocation = 96) { return {0x12, 0, 0, 0, allocation, 0}; }
inline Bytes request_sense() { return {0x03, 0, 0, 0, 252, 0}; }
inline Bytes report_luns() { return {0xa0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0}; }

// An Aio that must not be used.
class NoAio : public Aio {
 public:
  void submit(AioOp&) override { FAIL() << "nothing goes to the kernel in these tests"; }
};

// A command as a transport has it.
struct Task {
  Command command;
  Bytes data;
  int completions = 0;
  int detached = 0;  // calls of Command::on_detached
  bool done() const { return completions == 1; }

  uint8_t key() const { return command.sense_size ? command.sense[2] & 0x0f : 0; }
  // KK/AA/QQ of fixed format sense data.
  uint32_t sense() const {
    if (command.sense_size == 0) return 0;
    return uint32_t{key()} << 16 | uint32_t{command.sense[12]} << 8 | command.sense[13];
  }
  uint32_t information() const { return load_be32(command.sense.data() + 3); }
  Bytes answer() const {
    Bytes all;
    for (const Slice& slice : command.data_in) {
      all.insert(all.end(), slice.data, slice.data + slice.size);
    }
    return all;
  }
};

class LunTest : public testing::Test {
 protected:
  static constexpr uint64_t kBlocks = 2048;

  explicit LunTest(unsigned reactor_count = 2, uint32_t block_size = 512)
      : reactors(reactor_count), block(block_size) {}

  void SetUp() override { make_unit(); }

  void make_unit() {
    auto memory = std::make_unique<TestBackend>(kBlocks * block);
    prepare_backend(*memory);
    backend = memory.get();
    UnitIdentity identity;
    identity.uuid = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    identity.serial = "0102030405060708";
    identity.block_size = block;
    unit = std::make_shared<Unit>(identity, std::move(memory), reactors.count(), nullptr);
    target = std::make_shared<Target>("iqn.2026-11.dev.sluice:test", "", 1);
    target->set_luns({{0, unit}}, reactors);
  }
  virtual void prepare_backend(TestBackend&) {}

  void TearDown() override {
    if (backend) backend->release_all();
    for (auto& nexus : nexuses) nexus->close(false, [] {});
    reactors.run();
    nexuses.clear();
    tasks.clear();
  }

  // A nexus that has used every LUN, so that its first unit attention is reported.
  std::shared_ptr<Nexus> open(const std::string& name, unsigned reactor = 0) {
    auto nexus = open_fresh(name, reactor);
    UnitAttention ua;
    for (const uint64_t lun : nexus->lun_numbers()) {
      Itl* itl = nexus->use(scsi::lun_field(lun));
      while (itl->unit().attached().pop(*itl, &ua)) {
      }
    }
    return nexus;
  }
  std::shared_ptr<Nexus> open_fresh(const std::string& name, unsigned reactor = 0) {
    NexusId id;
    id.initiator_name = "iqn.2026-11.test:" + name;
    auto nexus = Nexus::open(target, id,
                             {&aio, &pool, &reactors, reactor, &now, &latencies, forwarding, clock},
                             read_only);
    nexuses.push_back(nexus);
    return nexus;
  }

  // Prepares a command without starting it.
  Task& make(Bytes cdb, Bytes data = {}, uint64_t lun_field = 0) {
    Task& task = *tasks.emplace_back(std::make_unique<Task>());
    std::copy_n(cdb.begin(), std::min<size_t>(cdb.size(), 16), task.command.cdb.begin());
    task.command.lun_field = lun_field;
    task.command.expected_data_in = 1u << 24;
    task.command.expected_data_out = static_cast<uint32_t>(data.size());
    task.data = std::move(data);
    task.command.context = &task;
    task.command.complete = [](Command& c) { ++static_cast<Task*>(c.context)->completions; };
    return task;
  }
  static bool begin(Nexus& nexus, Task& task) { return nexus.begin(task.command); }
  // Sends the data in slices of `piece` bytes.
  static void send_data(Nexus& nexus, Task& task, uint32_t piece = UINT32_MAX) {
    const auto size = std::min(task.command.data_out_wanted, task.command.expected_data_out);
    for (uint32_t at = 0; at < size; at += std::min(piece, size - at)) {
      task.command.data_out.push_back(
          {BufferRef(), task.data.data() + at, std::min(piece, size - at)});
    }
    task.command.data_out_size = size;
    nexus.data_ready(task.command);
  }
  Task& start(Nexus& nexus, Bytes cdb, Bytes data = {}, uint64_t lun_field = 0) {
    Task& task = make(std::move(cdb), std::move(data), lun_field);
    if (begin(nexus, task)) send_data(nexus, task);
    return task;
  }

  NoAio aio;
  BufferPool pool{size_t{64} << 20};
  TestReactors reactors;
  Nanos now = 0;
  LatencyLog latencies;
  Forwarding* forwarding = nullptr;  // for nexuses that are opened from now on, as the next members
  Nanos (*clock)() = nullptr;
  bool read_only = false;
  uint32_t block;
  TestBackend* backend = nullptr;
  std::shared_ptr<Unit> unit;
  std::shared_ptr<Target> target;
  std::vector<std::shared_ptr<Nexus>> nexuses;
  std::vector<std::unique_ptr<Task>> tasks;
};

}  // namespace sluice::lun
