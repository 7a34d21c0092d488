// A host that may only read (lun::HostAccess::read_only): its permitted commands and its errors.
#include "simulation/host_fixture.h"

namespace sluice::simulation {
namespace {

class ReadOnlyHost : public testing::Test {
 protected:
  void SetUp() override {
    lun::HostAccess reader;
    reader.initiators = {"iqn.2026-11.dev.sluice.test:reader"};
    reader.read_only = true;
    lun::HostAccess writer;
    writer.initiators = {Initiator::kName};
    gateway_.target().set_hosts({reader, writer});
    reader_.name = reader.initiators[0];
    ASSERT_TRUE(reader_.login());
    ASSERT_TRUE(writer_.login());
    reader_.clear_attention();
    writer_.clear_attention();
  }
  SimulatedGateway gateway_;
  Initiator reader_{gateway_.connect()};
  Initiator writer_{gateway_.connect()};
};

TEST_F(ReadOnlyHost, ReadsButIsRefusedEveryChange) {
  EXPECT_EQ(reader_.execute(read16(0, 1), 512).status, 0);
  for (const Bytes& cdb : {Bytes(hex("8a 00 00 00 00 00 00 00 00 00 00 00 00 01 00 00")),
                           Bytes(hex("93 00 00 00 00 00 00 00 00 00 00 00 00 01 00 00")),
                           Bytes(hex("2e 00 00 00 00 00 00 00 01 00"))}) {
    const auto refused = reader_.execute(cdb, 0, Bytes(512, 1));
    EXPECT_EQ(refused.sense_key, 7);
    EXPECT_EQ(refused.asc, 0x27);
    EXPECT_EQ(refused.ascq, 0x00);
  }
  EXPECT_EQ(writer_.execute(read16(0, 1), 512).data, Bytes(512)) << "nothing was written";
}

TEST_F(ReadOnlyHost, CannotStopTheUnit) {
  EXPECT_EQ(reader_.execute(hex("1b 00 00 00 00 00"), 0).sense_key, 7);
  EXPECT_EQ(writer_.execute(write16(0, 1), 0, Bytes(512, 1)).status, 0);
  EXPECT_EQ(reader_.execute(hex("1b 00 00 00 01 00"), 0).status, 0) << "to start it does no harm";
}

TEST_F(ReadOnlyHost, SeesItsLunsAsWriteProtectedWhileOthersWrite) {
  const auto mode = reader_.execute(hex("1a 00 3f 00 04 00"), 4);
  ASSERT_EQ(mode.data.size(), 4u);
  EXPECT_TRUE(mode.data[2] & 0x80) << "WP";
  EXPECT_FALSE(writer_.execute(hex("1a 00 3f 00 04 00"), 4).data[2] & 0x80);
  EXPECT_EQ(writer_.execute(write16(0, 1), 0, Bytes(512, 1)).status, 0);
}

TEST_F(ReadOnlyHost, CannotWriteThroughAThirdPartyCopy) {
  EXPECT_EQ(reader_.execute(hex("83 00 00 00 00 00 00 00 00 00 00 00 00 10 00 00"), 0, Bytes(16))
                .sense_key,
            7);
}

}  // namespace
}  // namespace sluice::simulation
