// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Entry points of libgomp and of LLVM's runtime that this library does not have. A program that
 * calls one ends with its name; a program that has one in code that it never runs works.
 */
#include "internal.h"

#define MISSING(name) \
	KO_PUBLIC void name(void) \
	{ \
		ko_unsupported(#name); \
	}

/* One name a line would be long: these macros take several. */
#define EACH4(a, b, c, d)	MISSING(a) MISSING(b) MISSING(c) MISSING(d)

/* ---- gcc: doacross loops ---- */

EACH4(GOMP_doacross_post, GOMP_doacross_wait, GOMP_doacross_ull_post, GOMP_doacross_ull_wait)
EACH4(GOMP_loop_doacross_static_start, GOMP_loop_doacross_dynamic_start,
      GOMP_loop_doacross_guided_start, GOMP_loop_doacross_runtime_start)
EACH4(GOMP_loop_ull_doacross_static_start, GOMP_loop_ull_doacross_dynamic_start,
      GOMP_loop_ull_doacross_guided_start, GOMP_loop_ull_doacross_runtime_start)
MISSING(GOMP_loop_doacross_start)
MISSING(GOMP_loop_ull_doacross_start)

/* ---- gcc: reductions of tasks ---- */

EACH4(GOMP_parallel_reductions, GOMP_task_reduction_remap, GOMP_taskgroup_reduction_register,
      GOMP_taskgroup_reduction_unregister)
MISSING(GOMP_workshare_task_reduction_unregister)

/* ---- gcc: devices ---- */

EACH4(GOMP_target, GOMP_target_ext, GOMP_target_data, GOMP_target_data_ext)
EACH4(GOMP_target_end_data, GOMP_target_update, GOMP_target_update_ext,
      GOMP_target_enter_exit_data)
EACH4(GOMP_offload_register, GOMP_offload_register_ver, GOMP_offload_unregister,
      GOMP_offload_unregister_ver)
MISSING(GOMP_teams)
MISSING(GOMP_teams4)

/* ---- gcc before 4.9 ---- */

EACH4(GOMP_parallel_start, GOMP_parallel_end, GOMP_parallel_sections_start,
      GOMP_parallel_loop_static_start)
MISSING(GOMP_parallel_loop_dynamic_start)
MISSING(GOMP_parallel_loop_guided_start)
MISSING(GOMP_parallel_loop_runtime_start)

/* ---- clang: doacross loops, loops of several teams ---- */

EACH4(__kmpc_doacross_init, __kmpc_doacross_post, __kmpc_doacross_wait, __kmpc_doacross_fini)
EACH4(__kmpc_dist_dispatch_init_4, __kmpc_dist_dispatch_init_4u, __kmpc_dist_dispatch_init_8,
      __kmpc_dist_dispatch_init_8u)
EACH4(__kmpc_dist_for_static_init_4, __kmpc_dist_for_static_init_4u,
      __kmpc_dist_for_static_init_8, __kmpc_dist_for_static_init_8u)
EACH4(__kmpc_team_static_init_4, __kmpc_team_static_init_4u, __kmpc_team_static_init_8,
      __kmpc_team_static_init_8u)

/* ---- clang: threadprivate without thread-local storage (-fnoopenmp-use-tls) ---- */

EACH4(__kmpc_threadprivate, __kmpc_threadprivate_cached, __kmpc_threadprivate_register,
      __kmpc_threadprivate_register_vec)

/* ---- clang: reductions of tasks, and tasks that others complete ---- */

EACH4(__kmpc_task_reduction_init, __kmpc_task_reduction_get_th_data,
      __kmpc_task_reduction_modifier_init, __kmpc_task_reduction_modifier_fini)
EACH4(__kmpc_taskred_init, __kmpc_taskred_modifier_init, __kmpc_omp_target_task_alloc,
      __kmpc_task_allow_completion_event)
EACH4(__kmpc_proxy_task_completed, __kmpc_proxy_task_completed_ooo, __kmpc_omp_task_parts,
      __kmpc_omp_reg_task_with_affinity)
EACH4(__kmpc_get_taskid, __kmpc_get_parent_taskid, __kmpc_invoke_task_func, __kmpc_taskloop_5)

/* ---- clang: what only other compilers call ---- */

EACH4(__kmpc_init_lock, __kmpc_init_lock_with_hint, __kmpc_destroy_lock, __kmpc_set_lock)
EACH4(__kmpc_test_lock, __kmpc_unset_lock, __kmpc_init_nest_lock,
      __kmpc_init_nest_lock_with_hint)
EACH4(__kmpc_destroy_nest_lock, __kmpc_set_nest_lock, __kmpc_test_nest_lock,
      __kmpc_unset_nest_lock)
EACH4(__kmpc_barrier_master, __kmpc_barrier_master_nowait, __kmpc_end_barrier_master,
      __kmpc_pop_num_threads)
EACH4(__kmpc_alloc, __kmpc_aligned_alloc, __kmpc_calloc, __kmpc_realloc)
EACH4(__kmpc_free, __kmpc_init_allocator, __kmpc_destroy_allocator, __kmpc_pause_resource)
MISSING(__kmpc_get_default_allocator)
MISSING(__kmpc_set_default_allocator)
MISSING(__kmpc_get_target_offload)

/* ---- functions of the user ---- */

EACH4(omp_target_alloc, omp_target_free, omp_target_is_present, omp_target_memcpy)
EACH4(omp_target_memcpy_rect, omp_target_associate_ptr, omp_target_disassociate_ptr,
      omp_get_num_interop_properties)
EACH4(omp_get_interop_int, omp_get_interop_ptr, omp_get_interop_str, omp_get_interop_name)
EACH4(omp_get_interop_type_desc, omp_get_interop_rc_desc, omp_control_tool, omp_fulfill_event)
EACH4(omp_display_affinity, omp_capture_affinity, omp_set_affinity_format,
      omp_get_affinity_format)
MISSING(omp_pause_resource)
MISSING(omp_pause_resource_all)

/* ---- atomic operations, of which clang makes instructions ---- */

/* The forms of an operation: its result; with the operands reversed; and both */
#define FORMS(name) \
	EACH4(name, name##_cpt, name##_rev, name##_cpt_rev)
#define ARITHMETIC(type) \
	FORMS(__kmpc_atomic_##type##_add) \
	FORMS(__kmpc_atomic_##type##_sub) \
	FORMS(__kmpc_atomic_##type##_mul) \
	FORMS(__kmpc_atomic_##type##_div) \
	MISSING(__kmpc_atomic_##type##_rd) \
	MISSING(__kmpc_atomic_##type##_wr) \
	MISSING(__kmpc_atomic_##type##_swp)
#define ORDERED(type) \
	FORMS(__kmpc_atomic_##type##_max) \
	FORMS(__kmpc_atomic_##type##_min)
#define INTEGER(type) \
	ARITHMETIC(type) \
	ORDERED(type) \
	FORMS(__kmpc_atomic_##type##_andb) \
	FORMS(__kmpc_atomic_##type##_andl) \
	FORMS(__kmpc_atomic_##type##_orb) \
	FORMS(__kmpc_atomic_##type##_orl) \
	FORMS(__kmpc_atomic_##type##_xor) \
	FORMS(__kmpc_atomic_##type##_eqv) \
	FORMS(__kmpc_atomic_##type##_neqv) \
	FORMS(__kmpc_atomic_##type##_shl) \
	FORMS(__kmpc_atomic_##type##_shr) \
	FORMS(__kmpc_atomic_##type##u_div) \
	FORMS(__kmpc_atomic_##type##u_shr) \
	MISSING(__kmpc_atomic_##type##_mul_float8) \
	MISSING(__kmpc_atomic_##type##_div_float8)

INTEGER(fixed1)
INTEGER(fixed2)
INTEGER(fixed4)
INTEGER(fixed8)
ARITHMETIC(float4)
ARITHMETIC(float8)
ARITHMETIC(float10)
ORDERED(float4)
ORDERED(float8)
ORDERED(float10)
ARITHMETIC(cmplx4)
ARITHMETIC(cmplx8)
ARITHMETIC(cmplx10)

EACH4(__kmpc_atomic_float4_add_float8, __kmpc_atomic_float4_sub_float8,
      __kmpc_atomic_float4_mul_float8, __kmpc_atomic_float4_div_float8)
EACH4(__kmpc_atomic_cmplx4_add_cmplx8, __kmpc_atomic_cmplx4_sub_cmplx8,
      __kmpc_atomic_cmplx4_mul_cmplx8, __kmpc_atomic_cmplx4_div_cmplx8)
EACH4(__kmpc_atomic_1, __kmpc_atomic_2, __kmpc_atomic_4, __kmpc_atomic_8)
EACH4(__kmpc_atomic_10, __kmpc_atomic_16, __kmpc_atomic_20, __kmpc_atomic_32)
EACH4(__kmpc_atomic_bool_1_cas, __kmpc_atomic_bool_2_cas, __kmpc_atomic_bool_4_cas,
      __kmpc_atomic_bool_8_cas)
EACH4(__kmpc_atomic_bool_1_cas_cpt, __kmpc_atomic_bool_2_cas_cpt, __kmpc_atomic_bool_4_cas_cpt,
      __kmpc_atomic_bool_8_cas_cpt)
EACH4(__kmpc_atomic_val_1_cas, __kmpc_atomic_val_2_cas, __kmpc_atomic_val_4_cas,
      __kmpc_atomic_val_8_cas)
EACH4(__kmpc_atomic_val_1_cas_cpt, __kmpc_atomic_val_2_cas_cpt, __kmpc_atomic_val_4_cas_cpt,
      __kmpc_atomic_val_8_cas_cpt)
