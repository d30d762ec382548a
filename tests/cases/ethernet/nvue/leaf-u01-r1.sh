# leaf-u01-r1, AS 4200010001. NVUE commands for Cumulus Linux 5.9 to 5.14; run them on the switch, then apply.
nv set system hostname leaf-u01-r1
nv set interface lo ip address 172.16.128.1/32
nv set interface swp1-2,swp33-34 link breakout 2x
nv set interface swp1s0 ip address 172.17.0.0/31
nv set interface swp1s0 description "dgx0001 mlx5_0"
nv set interface swp1s1 ip address 172.17.0.2/31
nv set interface swp1s1 description "dgx0002 mlx5_0"
nv set interface swp2s0 ip address 172.17.0.4/31
nv set interface swp2s0 description "dgx0003 mlx5_0"
nv set interface swp2s1 ip address 172.17.0.6/31
nv set interface swp2s1 description "dgx0004 mlx5_0"
nv set router bgp autonomous-system 4200010001
nv set router bgp router-id 172.16.128.1
nv set vrf default router bgp path-selection multipath aspath-ignore on
nv set vrf default router bgp address-family ipv4-unicast network 172.16.128.1/32
nv set vrf default router bgp address-family ipv4-unicast redistribute connected enable on
nv set vrf default router bgp neighbor swp33s0 remote-as external
nv set vrf default router bgp neighbor swp33s1 remote-as external
nv set vrf default router bgp neighbor swp34s0 remote-as external
nv set vrf default router bgp neighbor swp34s1 remote-as external
nv set qos roce mode lossless
nv set router adaptive-routing enable on
nv set interface swp33s0 router adaptive-routing enable on
nv set interface swp33s1 router adaptive-routing enable on
nv set interface swp34s0 router adaptive-routing enable on
nv set interface swp34s1 router adaptive-routing enable on
nv config apply
