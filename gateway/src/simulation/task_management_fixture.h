// Common code of the task management tests: a host, commands in any stage, functions.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <vector>

#include "simulation/initiator.h"

namespace sluice::simulation {

class TaskManagement : public testing::Test {
 protected:
  using Function = pdu::TaskFunction;
  static constexpr uint8_t kComplete = 0;
  static constexpr uint8_t kNoSuchTask = 1;
  static constexpr uint8_t kNoSuchLun = 2;

  void SetUp() override {
    ASSERT_TRUE(host_.login(kKeys));
    host_.clear_attention();
    host_.clear_attention(1);
  }
  void log_in_other() {
    other_ = std::make_unique<Initiator>(gateway_.connect());
    other_->isid[5] = 9;
    ASSERT_TRUE(other_->login(kKeys));
    other_->clear_attention();
    other_->clear_attention(1);
  }

  static pdu::Bhs function(Initiator& from, Function f, uint64_t lun = 0, uint32_t referenced = 0,
                           uint32_t ref_cmd_sn = 0) {
    pdu::Bhs h = from.request(pdu::Opcode::kTaskManagementRequest, true);
    h.set_flags(static_cast<uint8_t>(pdu::kFlagFinal | static_cast<uint8_t>(f)));
    h.set_lun(lun << 48);
    h.put32(20, referenced);
    h.put32(32, ref_cmd_sn);
    return h;
  }
  pdu::Bhs abort_of(const pdu::Bhs& command) {
    pdu::Bhs h = function(host_, Function::kAbortTask, 0, command.itt(), command.cmd_sn());
    h.set_lun(command.lun());
    return h;
  }
  pdu::Bhs start_read(Initiator& from, uint64_t lun = 0) {
    const pdu::Bhs h = from.command(read16(0, 1), pdu::kFlagFinal | pdu::kFlagRead | 1, 512, lun);
    from.send(h);
    return h;
  }
  // A write of 16 blocks. Its first 4 KiB are announced as unsolicited, or it waits for an R2T.
  pdu::Bhs start_write(Initiator& from, bool unsolicited) {
    const auto flags =
        static_cast<uint8_t>((unsolicited ? 0 : pdu::kFlagFinal) | pdu::kFlagWrite | 1);
    const pdu::Bhs h = from.command(write16(0, 16), flags, 8192);
    from.send(h);
    return h;
  }
  // The only PDU that was sent is the response to `f`.
  static void expect_only(Initiator& host, const pdu::Bhs& f, uint8_t response) {
    const auto a = host.answer();
    ASSERT_TRUE(a) << "one PDU";
    ASSERT_EQ(a->header.opcode(), pdu::Opcode::kTaskManagementResponse);
    EXPECT_EQ(a->header.itt(), f.itt());
    EXPECT_EQ(a->header.u8(2), response);
  }
  void release() {
    gateway_.disk().hold(false);
    gateway_.disk().release_all();
    gateway_.run();
  }
  void expect_all_is_well(Initiator& host) {
    EXPECT_EQ(host.execute(read16(0, 1), 512).status, 0);
    EXPECT_EQ(gateway_.buffers().in_use(), 0u);
  }

  inline static const std::vector<std::string> kKeys = {"InitialR2T=No", "ImmediateData=Yes",
                                                        "FirstBurstLength=4096"};
  const std::vector<uint8_t> data_ = std::vector<uint8_t>(8192, 0x5a);
  SimulatedGateway gateway_;
  Initiator host_{gateway_.connect()};
  std::unique_ptr<Initiator> other_;
};

}  // namespace sluice::simulation
