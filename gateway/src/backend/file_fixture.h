// A file on a disk with an Aio whose results the test supplies instead of the kernel.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include <memory>
#include <string>
#include <utility>

#include "backend/file.h"
#include "backend/spec.h"
#include "backend/test_driver.h"
#include "backend/test_storage.h"

namespace sluice::backend {

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!disk_.skip_reason().empty()) GTEST_SKIP() << disk_.skip_reason();
    if (ScratchDirectory::on_tmpfs("/var/tmp"))
      GTEST_SKIP() << "/var/tmp is on tmpfs, not on a disk";
  }
  std::string text(const std::string& options) const {
    return "file:" + disk_.file("a.img") + ",size=4MiB" + options;
  }
  static Result<std::unique_ptr<Backend>> try_open(const std::string& text) {
    return open(parse_spec(text).value());
  }
  static std::unique_ptr<Backend> open_text(const std::string& text) {
    auto opened = try_open(text);
    EXPECT_TRUE(opened.ok()) << opened.error();
    return opened ? std::move(*opened) : nullptr;
  }
  static int only_rw_flags(const TestAio& aio) {
    const TestAio::Record& last = aio.records().back();
    // A write by direct I/O may be tried without waiting before.
    EXPECT_EQ(aio.records().size(), aio.records().front().nowait && last.may_block ? 2u : 1u);
    for (const TestAio::Record& record : aio.records()) {
      EXPECT_EQ(record.kind, AioOp::Kind::kWritev);
      EXPECT_EQ(record.rw_flags, last.rw_flags);
    }
    return last.rw_flags;
  }

  // Whether the start of the file exists only in the page cache (delayed allocation).
  static bool is_delayed(const std::string& path) {
    alignas(fiemap) uint8_t memory[sizeof(fiemap) + sizeof(fiemap_extent)] = {};
    auto* map = reinterpret_cast<fiemap*>(memory);
    map->fm_length = 4096;
    map->fm_extent_count = 1;
    FileDescriptor fd(::open(path.c_str(), O_RDONLY));
    return ioctl(fd.get(), FS_IOC_FIEMAP, map) == 0 && map->fm_mapped_extents == 1 &&
           (map->fm_extents[0].fe_flags & FIEMAP_EXTENT_DELALLOC) != 0;
  }

  ScratchDirectory disk_{"/var/tmp"};
};

}  // namespace sluice::backend
