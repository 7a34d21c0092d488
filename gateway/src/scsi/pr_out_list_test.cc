#include "scsi/pr_out_list.h"

#include <gtest/gtest.h>

#include "scsi/expected_bytes.h"
#include "scsi/refusal_text.h"

namespace sluice::scsi {
namespace {

Outcome<PrOutRequest> parse(PrOutAction action, uint8_t scope_type,
                            const std::vector<uint8_t>& data, int declared_length = -1) {
  auto cdb = hex("5f 00*9");
  cdb[1] = static_cast<uint8_t>(action);
  cdb[2] = scope_type;
  store_be32(&cdb[5], static_cast<uint32_t>(declared_length < 0 ? static_cast<int>(data.size())
                                                                : declared_length));
  return parse_pr_out(cdb, data);
}

std::vector<uint8_t> basic(uint8_t flags) {
  auto list = hex("0102030405060708 1112131415161718 00*8");
  list[20] = flags;
  return list;
}

// TransportIDs: device name, and port name with an ISID
const auto kDevice = hex("05 00 00 14") + ascii("iqn.2026-11.x:host") + hex("00*2");
const auto kPort = hex("45 00 00 20") + ascii("iqn.x:host,i,0x00023d000001") + hex("00*5");

TEST(PrOut, TheBasicListContainsKeysAndRegistrationFlags) {
  const auto request = parse(PrOutAction::kRegister, 0, basic(0x05));
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->key, 0x0102030405060708u);
  EXPECT_EQ(request->service_action_key, 0x1112131415161718u);
  EXPECT_TRUE(request->all_target_ports && request->aptpl);
  EXPECT_FALSE(request->spec_i_pt);
}

TEST(PrOut, RegistrationFlagsAreIgnoredByReserve) {
  const auto request = parse(PrOutAction::kReserve, 0x05, basic(0x05));
  ASSERT_TRUE(request.ok());
  EXPECT_FALSE(request->all_target_ports || request->aptpl);
  EXPECT_EQ(request->type, PrType::kWriteExclusiveRegistrantsOnly);
}

TEST(PrOut, TypesAndScopesAreCheckedOnlyWhereTheyApply) {
  for (int type = 0; type < 16; ++type) {
    const bool valid = type == 1 || type == 3 || (type >= 5 && type <= 8);
    const auto code = static_cast<uint8_t>(type);
    EXPECT_EQ(refusal_of(parse(PrOutAction::kReserve, code, basic(0))),
              valid ? "ok" : "24/00 cdb 2.3");
    EXPECT_EQ(refusal_of(parse(PrOutAction::kRelease, code, basic(0))),
              valid ? "ok" : "24/00 cdb 2.3");
    EXPECT_EQ(refusal_of(parse(PrOutAction::kRegister, code, basic(0))), "ok");
    const auto preempt = parse(PrOutAction::kPreempt, code, basic(0));
    ASSERT_TRUE(preempt.ok());
    EXPECT_EQ(preempt->type == PrType::kNone, !valid);
  }
  EXPECT_EQ(refusal_of(parse(PrOutAction::kReserve, 0x15, basic(0))), "24/00 cdb 2.7");
}

TEST(PrOut, ListLengthIs24WithoutTransportIds) {
  auto longer = basic(0);
  longer.push_back(0);
  EXPECT_EQ(refusal_of(parse(PrOutAction::kRegister, 0, longer)), "1a/00");
  auto shorter = basic(0);
  shorter.pop_back();
  EXPECT_EQ(refusal_of(parse(PrOutAction::kRegister, 0, shorter)), "1a/00");
  EXPECT_EQ(refusal_of(parse(PrOutAction::kRegister, 0, basic(0), 25)), "1a/00");
  EXPECT_EQ(refusal_of(parse(PrOutAction::kClear, 0, {})), "1a/00");
}

TEST(PrOut, SpecIPtAddsTransportIds) {
  const auto list = basic(0x08) + hex("0000003c") + kDevice + kPort;
  const auto request = parse(PrOutAction::kRegister, 0, list);
  ASSERT_TRUE(request.ok()) << refusal_of(request);
  size_t at = 0;
  TransportId id;
  ASSERT_TRUE(request->transport_ids.next(&at, &id));
  EXPECT_EQ(id.name, "iqn.2026-11.x:host");
  EXPECT_FALSE(id.has_isid);
  ASSERT_TRUE(request->transport_ids.next(&at, &id));
  EXPECT_EQ(id.name, "iqn.x:host");
  EXPECT_TRUE(id.has_isid);
  EXPECT_EQ(id.isid, (std::array<uint8_t, 6>{0x00, 0x02, 0x3d, 0x00, 0x00, 0x01}));
  EXPECT_FALSE(request->transport_ids.next(&at, &id));
}

TEST(PrOut, SpecIPtIsAcceptedForRegisterOnly) {
  const auto list = basic(0x08) + hex("00000000");
  EXPECT_EQ(refusal_of(parse(PrOutAction::kRegister, 0, list)), "ok");
  EXPECT_EQ(refusal_of(parse(PrOutAction::kRegisterAndIgnoreExistingKey, 0, list)), "26/00 20.3");
  EXPECT_EQ(refusal_of(parse(PrOutAction::kReserve, 1, list)), "26/00 20.3");
}

TEST(PrOut, TransportIdLengthsMustAddUp) {
  EXPECT_EQ(refusal_of(parse(PrOutAction::kRegister, 0, basic(0x08))), "1a/00");
  EXPECT_EQ(refusal_of(parse(PrOutAction::kRegister, 0, basic(0x08) + hex("00000019") + kDevice)),
            "1a/00");
  EXPECT_EQ(refusal_of(parse(PrOutAction::kRegister, 0,
                             basic(0x08) + hex("0000001c") + kDevice + hex("05 00 00 14"))),
            "26/00 54.7");
}

TEST(PrOut, RegisterAndMoveHasItsOwnList) {
  auto list = hex("0102030405060708 1112131415161718 00 03 01 02 00000024") + kPort;
  const auto request = parse(PrOutAction::kRegisterAndMove, 0, list);
  ASSERT_TRUE(request.ok()) << refusal_of(request);
  EXPECT_TRUE(request->unregister && request->aptpl);
  EXPECT_EQ(request->relative_target_port, 0x0102);
  size_t at = 0;
  TransportId id;
  ASSERT_TRUE(request->transport_ids.next(&at, &id));
  EXPECT_EQ(id.name, "iqn.x:host");

  std::fill_n(list.begin() + 8, 8, uint8_t{0});
  EXPECT_EQ(refusal_of(parse(PrOutAction::kRegisterAndMove, 0, list)), "26/00 8.7");
  list.pop_back();
  EXPECT_EQ(refusal_of(parse(PrOutAction::kRegisterAndMove, 0, list)), "1a/00");
}

TEST(PrOut, RegisterAndMoveAcceptsExactlyOnePort) {
  const auto list = hex("0102030405060708 1112131415161718 00 00 00 01 0000003c") + kPort + kDevice;
  EXPECT_EQ(refusal_of(parse(PrOutAction::kRegisterAndMove, 0, list)), "26/00 20.7");
}

std::string id_refusal(const std::vector<uint8_t>& id) {
  size_t used = 0;
  return refusal_of(parse_transport_id(id, 100, &used));
}

TEST(TransportId, RefusesAnInvalidIscsiPortWithItsFieldPointer) {
  EXPECT_EQ(id_refusal(hex("00 00 00 14 00*20")), "26/00 100.3");  // Fibre Channel
  EXPECT_EQ(id_refusal(hex("85 00 00 14 00*20")), "26/00 100.7");  // format 10b
  EXPECT_EQ(id_refusal(hex("05 00 00 10") + ascii("iqn.x:1") + hex("00*9")), "26/00 102.7");
  EXPECT_EQ(id_refusal(hex("05 00 00 15") + ascii("iqn.x:1") + hex("00*14")), "26/00 102.7");
  EXPECT_EQ(id_refusal(hex("05 00 00 18") + ascii("iqn.x:1") + hex("00*13")), "26/00 102.7");
  EXPECT_EQ(id_refusal(hex("05 00 00 14 00*20")), "26/00 104");  // no name
  EXPECT_EQ(id_refusal(hex("05 00 00 14 61*20")), "26/00 104");  // no terminator
  EXPECT_EQ(id_refusal(hex("45 00 00 14") + ascii("iqn.x:1") + hex("00*13")), "26/00 104");
  EXPECT_EQ(id_refusal(hex("45 00 00 14") + ascii("iqn.x,i,0xg") + hex("00*9")), "26/00 114");
  EXPECT_EQ(id_refusal(hex("45 00 00 14") + ascii("iqn.x,i,0x") + hex("00*10")), "26/00 114");
  EXPECT_EQ(id_refusal(hex("45 00")), "26/00 100");
}

TEST(TransportId, IsParsedAsItWasWritten) {
  for (const size_t length : {1, 4, 20, 63, 223}) {
    const std::string name(length, 'a');
    const std::array<uint8_t, 6> isid{0x80, 0x12, 0x34, 0x00, 0xff, 0x01};
    const auto bytes = built([&](MutableBytes out) {
      ResponseWriter w(out);
      write_transport_id(name, isid, w);
      return w.size();
    });
    EXPECT_EQ(bytes.size() % 4, 0u);
    EXPECT_GE(bytes.size(), 24u);
    size_t used = 0;
    const auto id = parse_transport_id(bytes, 0, &used);
    ASSERT_TRUE(id.ok()) << refusal_of(id);
    EXPECT_EQ(used, bytes.size());
    EXPECT_EQ(id->name, name);
    EXPECT_EQ(id->isid, isid);
  }
}

}  // namespace
}  // namespace sluice::scsi
