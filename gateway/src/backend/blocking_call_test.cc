#include "backend/blocking_call.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "base/file_descriptor.h"

namespace sluice::backend {
namespace {

// A reactor that asked for the free space would wait for the file system (DESIGN R15).
TEST(BlockingCall, AWriteThatFindsNoSpaceAsksOnTheSameThreadAndKeepsItsError) {
  const FileDescriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  char byte = 0;
  const iovec data{&byte, 1};
  int asked = 0;
  AioOp op;
  op.kind = AioOp::Kind::kWritev;
  op.fd = full.get();
  op.iov = &data;
  op.iovcnt = 1;
  op.context = &asked;
  op.call = [](AioOp& o) {
    ++*static_cast<int*>(o.context);
    errno = EIO;
  };
  EXPECT_EQ(run_blocking(op), -ENOSPC);
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace sluice::backend
