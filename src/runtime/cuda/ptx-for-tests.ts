/** @file Small PTX kernels for the tests on a real device, each for one thing that only a device can confirm. */

const header = (target: string): string => `.version 8.0\n.target ${target}\n.address_size 64\n`;

/** Writes each of its arguments to `out`, 8 bytes apart: i32, i64, f16, f32, f64, i8, u64. */
export const echoPtx = (target: string): string => `${header(target)}
.visible .entry echo(
  .param .u64 out, .param .s32 p1, .param .s64 p2, .param .b16 p3, .param .f32 p4, .param .f64 p5, .param .b16 p6,
  .param .u64 p7)
{
  .reg .b64 %d<4>; .reg .b32 %r<2>; .reg .b16 %h<2>; .reg .f32 %f<2>; .reg .f64 %e<2>;
  ld.param.u64 %d0, [out];
  cvta.to.global.u64 %d0, %d0;
  ld.param.s32 %r0, [p1];   st.global.s32 [%d0], %r0;
  ld.param.s64 %d1, [p2];   st.global.s64 [%d0 + 8], %d1;
  ld.param.b16 %h0, [p3];   st.global.b16 [%d0 + 16], %h0;
  ld.param.f32 %f0, [p4];   st.global.f32 [%d0 + 24], %f0;
  ld.param.f64 %e0, [p5];   st.global.f64 [%d0 + 32], %e0;
  ld.param.b16 %h1, [p6];   st.global.b16 [%d0 + 40], %h1;
  ld.param.u64 %d2, [p7];   st.global.u64 [%d0 + 48], %d2;
  ret;
}
`;

/** Adds 1 to element `block` of u32 `out` for each thread; `dynamic` bytes of shared memory are touched at their end. */
export const countPtx = (target: string): string => `${header(target)}
.extern .shared .align 1024 .b8 arena[];
.visible .entry count(.param .u64 out, .param .u32 dynamic)
{
  .reg .b64 %d<3>; .reg .b32 %r<6>;
  ld.param.u64 %d0, [out];
  cvta.to.global.u64 %d0, %d0;
  ld.param.u32 %r0, [dynamic];
  mov.u32 %r1, arena;
  add.u32 %r1, %r1, %r0;
  mov.u32 %r2, 1;
  st.shared.u32 [%r1 + -4], %r2;
  bar.sync 0;
  ld.shared.u32 %r3, [%r1 + -4];
  mov.u32 %r4, %ctaid.x;
  mul.wide.u32 %d1, %r4, 4;
  add.u64 %d0, %d0, %d1;
  red.global.add.u32 [%d0], %r3;
  ret;
}
`;

/** Keeps the device busy for `cycles` cycles of its clock. */
export const waitPtx = (target: string): string => `${header(target)}
.visible .entry wait(.param .u64 cycles)
{
  .reg .b64 %d<4>; .reg .pred %p<1>;
  ld.param.u64 %d0, [cycles];
  mov.u64 %d1, %clock64;
again:
  mov.u64 %d2, %clock64;
  sub.u64 %d2, %d2, %d1;
  setp.lt.u64 %p0, %d2, %d0;
  @%p0 bra again;
  ret;
}
`;

/** Stores rank in the cluster + 10 times the cluster's number for each block. */
export const clusterPtx = (target: string): string => `${header(target)}
.visible .entry ranks(.param .u64 out)
{
  .reg .b64 %d<2>; .reg .b32 %r<4>;
  ld.param.u64 %d0, [out];
  cvta.to.global.u64 %d0, %d0;
  mov.u32 %r0, %ctaid.x;
  mul.wide.u32 %d1, %r0, 4;
  add.u64 %d0, %d0, %d1;
  mov.u32 %r1, %cluster_ctarank;
  mov.u32 %r2, %clusterid.x;
  mad.lo.u32 %r3, %r2, 10, %r1;
  st.global.u32 [%d0], %r3;
  ret;
}
`;

/** Loads the box of 32 x 8 f32 at (column, row) through a tensor map and stores it densely; 256 threads. */
export const tensorPtx = (target: string): string => `${header(target)}
.visible .entry box(.param .align 64 .b8 map[128], .param .u64 out, .param .s32 column, .param .s32 row)
{
  .shared .align 128 .b8 tile[1024];
  .shared .align 8 .b64 barrier;
  .reg .b64 %d<4>; .reg .b32 %r<8>; .reg .f32 %f<1>; .reg .pred %p<2>;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, tile;
  mov.u32 %r2, barrier;
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra ready;
  mbarrier.init.shared::cta.b64 [%r2], 1;
  fence.mbarrier_init.release.cluster;
  fence.proxy.async.shared::cta;
  mov.b64 %d0, map;
  cvta.param.u64 %d0, %d0;
  ld.param.s32 %r3, [column];
  ld.param.s32 %r4, [row];
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 1024;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%d0, {%r3, %r4}], [%r2];
ready:
  bar.sync 0;
again:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;
  @!%p1 bra again;
  shl.b32 %r5, %r0, 2;
  add.u32 %r6, %r1, %r5;
  ld.shared.f32 %f0, [%r6];
  ld.param.u64 %d1, [out];
  cvta.to.global.u64 %d1, %d1;
  mul.wide.u32 %d2, %r0, 4;
  add.u64 %d1, %d1, %d2;
  st.global.f32 [%d1], %f0;
  ret;
}
`;

/** Stores to an address that no allocation has. */
export const faultPtx = (target: string): string => `${header(target)}
.visible .entry fault()
{
  .reg .b64 %d<1>; .reg .b32 %r<1>;
  mov.u64 %d0, 16;
  mov.u32 %r0, 1;
  st.global.u32 [%d0], %r0;
  ret;
}
`;
