#include "backend/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::backend {
namespace {

using testing::HasSubstr;

TEST(SpecText, FillsEveryField) {
  auto spec = parse_spec(
      "file:/data/disk.img,size=1GiB,io=direct,write-cache=on,read-only=on,block-size=4096,"
      "create=off");
  ASSERT_TRUE(spec.ok()) << spec.error();
  EXPECT_EQ(spec->kind, "file");
  EXPECT_EQ(spec->path, "/data/disk.img");
  EXPECT_EQ(spec->size, uint64_t{1} << 30);
  EXPECT_TRUE(spec->direct);
  EXPECT_TRUE(spec->write_cache);
  EXPECT_TRUE(spec->read_only);
  EXPECT_EQ(spec->block_size, 4096u);
  EXPECT_FALSE(spec->create);
}

TEST(SpecText, DefaultsAreSafe) {
  auto spec = parse_spec("file:/data/disk.img");
  ASSERT_TRUE(spec.ok()) << spec.error();
  EXPECT_FALSE(spec->write_cache);
  EXPECT_FALSE(spec->read_only);
  EXPECT_FALSE(spec->direct);
  EXPECT_EQ(spec->block_size, 512u);
  EXPECT_EQ(spec->size, 0u);
}

TEST(SpecText, AcceptsASizeInsteadOfAPath) {
  EXPECT_EQ(parse_spec("null:1GiB").value().size, uint64_t{1} << 30);
  EXPECT_EQ(parse_spec("memory:256MiB,block-size=4096").value().block_size, 4096u);
  EXPECT_EQ(parse_spec("memory:size=1MiB,read-only=on").value().size, uint64_t{1} << 20);
}

TEST(SpecText, RefusesAnUnknownKeyWithTheNearestAndTheValidKeys) {
  auto spec = parse_spec("file:/x,szie=1GiB");
  ASSERT_FALSE(spec.ok());
  EXPECT_THAT(spec.error(), HasSubstr("did you mean 'size'"));
  EXPECT_THAT(spec.error(), HasSubstr("write-cache"));
  EXPECT_THAT(parse_spec("file:/x,writecache=on").error(), HasSubstr("'write-cache'"));
  EXPECT_THAT(parse_spec("file:/x,colour=on").error(), HasSubstr("unknown key 'colour'. Valid"));
}

TEST(SpecText, RefusesKeysThatTheKindDoesNotSupport) {
  EXPECT_FALSE(parse_spec("block:/dev/loop0,io=direct").ok());
  EXPECT_FALSE(parse_spec("memory:1MiB,create=on").ok());
  EXPECT_TRUE(parse_spec("block:/dev/loop0,write-cache=on").ok());
}

TEST(SpecText, ParsesAnImageAndItsCluster) {
  auto spec = parse_spec("rbd:pool/disk,monitors=192.0.2.1;192.0.2.2:3300,user=gw,keyring=/k");
  ASSERT_TRUE(spec.ok()) << spec.error();
  EXPECT_EQ(spec->path, "pool/disk");
  EXPECT_EQ(spec->ceph.monitors, "192.0.2.1,192.0.2.2:3300");
  EXPECT_EQ(spec->ceph.user, "gw");
  EXPECT_EQ(spec->ceph.keyring_file, "/k");
  EXPECT_EQ(parse_spec("rbd:pool/space/disk,conf=/c").value().ceph.config_file, "/c");
  for (const char* bad : {"rbd:disk", "rbd:/pool/disk", "rbd:pool/", "rbd:a/b/c/d", "rbd:a//b",
                          "rbd:pool/disk@snap", "rbd:", "rbd:pool/disk,io=direct"}) {
    EXPECT_FALSE(parse_spec(bad).ok()) << bad;
  }
  EXPECT_THAT(parse_spec("rbd:disk").error(), HasSubstr("rbd:pool/image"));
}

TEST(Open, OfAnImageFailsInAProgramWithoutCeph) {
  auto opened = open(parse_spec("rbd:pool/disk").value());
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error(), HasSubstr("pool/disk: this program can't open images"));
}

TEST(Open, OfAPassThroughDeviceFailsInAProgramWithoutPassThrough) {
  EXPECT_THAT(open(parse_spec("sg:/dev/sg0").value()).error(),
              HasSubstr("can't open SCSI devices"));
  EXPECT_THAT(open(parse_spec("nvme:/dev/ng0n1").value()).error(),
              HasSubstr("can't open NVMe namespaces"));
}

TEST(SpecText, RefusesAKeyGivenTwice) {
  EXPECT_THAT(parse_spec("file:/x,size=1GiB,io=direct,size=2GiB").error(),
              HasSubstr("size is given twice"));
  EXPECT_THAT(parse_spec("null:1GiB,size=1GiB").error(), HasSubstr("size is given twice"));
  EXPECT_THAT(parse_spec("file:/x,read-only=on,read-only=on").error(), HasSubstr("read-only"));
}

TEST(SpecText, RefusesSpecificationsThatOpenWouldRefuse) {
  EXPECT_THAT(parse_spec("flie:/x").error(), HasSubstr("null memory file block sg nvme rbd"));
  EXPECT_THAT(parse_spec("file:").error(), HasSubstr("no path"));
  EXPECT_THAT(parse_spec("null").error(), HasSubstr("no size"));
  EXPECT_THAT(parse_spec("null:lots").error(), HasSubstr("'lots'"));
  EXPECT_THAT(parse_spec("null:1000").error(), HasSubstr("not a multiple"));
  EXPECT_THAT(parse_spec("null:1GiB,block-size=520").error(), HasSubstr("512 or 4096"));
  EXPECT_THAT(parse_spec("null:1GiB,read-only=yes").error(), HasSubstr("on nor off"));
  EXPECT_THAT(parse_spec("file:/x,io=fast").error(), HasSubstr("buffered"));
  EXPECT_THAT(parse_spec("null:1GiB,fault=errno=EIO").error(), HasSubstr("unknown key 'fault'"));
  EXPECT_THAT(parse_spec("sg:").error(), HasSubstr("no path"));
  EXPECT_THAT(parse_spec("nvme:/dev/ng0n1,size=1GiB").error(), HasSubstr("exported whole"));
  EXPECT_THAT(parse_spec("sg:/dev/sg0,io=direct").error(), HasSubstr("unknown key 'io'"));
  EXPECT_THAT(parse_spec("").error(), HasSubstr("valid kinds"));
  EXPECT_FALSE(parse_spec("null:16777215TiB").ok());
  EXPECT_THAT(parse_spec("memory:8EiB").error(), HasSubstr("only null"));
  EXPECT_THAT(parse_spec("file:/x,size=9EiB").error(), HasSubstr("8EiB"));
}

TEST(SpecText, AcceptsTheLargestSizeOf8EiB) {
  auto spec = parse_spec("null:8EiB");
  ASSERT_TRUE(spec.ok()) << spec.error();
  EXPECT_EQ(spec->size, uint64_t{1} << 63);
  auto opened = open(*spec);
  ASSERT_TRUE(opened.ok()) << opened.error();
  EXPECT_EQ((*opened)->size_bytes(), uint64_t{1} << 63);
}

TEST(Open, ValidatesASpecThatWasNotParsed) {
  Spec spec;
  spec.kind = "memory";
  spec.size = 1000;
  auto opened = open(spec);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error(), HasSubstr("not a multiple"));
}

}  // namespace
}  // namespace sluice::backend
