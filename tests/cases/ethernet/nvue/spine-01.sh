# spine-01, AS 4200000002. NVUE commands for Cumulus Linux 5.9 to 5.14; run them on the switch, then apply.
nv set system hostname spine-01
nv set interface lo ip address 172.16.64.1/32
nv set interface swp1-16 link breakout 2x
nv set router bgp autonomous-system 4200000002
nv set router bgp router-id 172.16.64.1
nv set vrf default router bgp path-selection multipath aspath-ignore on
nv set vrf default router bgp address-family ipv4-unicast network 172.16.64.1/32
nv set vrf default router bgp neighbor swp1s0 remote-as external
nv set vrf default router bgp neighbor swp1s1 remote-as external
nv set vrf default router bgp neighbor swp2s0 remote-as external
nv set vrf default router bgp neighbor swp2s1 remote-as external
nv set vrf default router bgp neighbor swp3s0 remote-as external
nv set vrf default router bgp neighbor swp3s1 remote-as external
nv set vrf default router bgp neighbor swp4s0 remote-as external
nv set vrf default router bgp neighbor swp4s1 remote-as external
nv set vrf default router bgp neighbor swp5s0 remote-as external
nv set vrf default router bgp neighbor swp5s1 remote-as external
nv set vrf default router bgp neighbor swp6s0 remote-as external
nv set vrf default router bgp neighbor swp6s1 remote-as external
nv set vrf default router bgp neighbor swp7s0 remote-as external
nv set vrf default router bgp neighbor swp7s1 remote-as external
nv set vrf default router bgp neighbor swp8s0 remote-as external
nv set vrf default router bgp neighbor swp8s1 remote-as external
nv set vrf default router bgp neighbor swp9s0 remote-as external
nv set vrf default router bgp neighbor swp9s1 remote-as external
nv set vrf default router bgp neighbor swp10s0 remote-as external
nv set vrf default router bgp neighbor swp10s1 remote-as external
nv set vrf default router bgp neighbor swp11s0 remote-as external
nv set vrf default router bgp neighbor swp11s1 remote-as external
nv set vrf default router bgp neighbor swp12s0 remote-as external
nv set vrf default router bgp neighbor swp12s1 remote-as external
nv set vrf default router bgp neighbor swp13s0 remote-as external
nv set vrf default router bgp neighbor swp13s1 remote-as external
nv set vrf default router bgp neighbor swp14s0 remote-as external
nv set vrf default router bgp neighbor swp14s1 remote-as external
nv set vrf default router bgp neighbor swp15s0 remote-as external
nv set vrf default router bgp neighbor swp15s1 remote-as external
nv set vrf default router bgp neighbor swp16s0 remote-as external
nv set vrf default router bgp neighbor swp16s1 remote-as external
nv set qos roce mode lossless
nv set router adaptive-routing enable on
nv set interface swp1s0 router adaptive-routing enable on
nv set interface swp1s1 router adaptive-routing enable on
nv set interface swp2s0 router adaptive-routing enable on
nv set interface swp2s1 router adaptive-routing enable on
nv set interface swp3s0 router adaptive-routing enable on
nv set interface swp3s1 router adaptive-routing enable on
nv set interface swp4s0 router adaptive-routing enable on
nv set interface swp4s1 router adaptive-routing enable on
nv set interface swp5s0 router adaptive-routing enable on
nv set interface swp5s1 router adaptive-routing enable on
nv set interface swp6s0 router adaptive-routing enable on
nv set interface swp6s1 router adaptive-routing enable on
nv set interface swp7s0 router adaptive-routing enable on
nv set interface swp7s1 router adaptive-routing enable on
nv set interface swp8s0 router adaptive-routing enable on
nv set interface swp8s1 router adaptive-routing enable on
nv set interface swp9s0 router adaptive-routing enable on
nv set interface swp9s1 router adaptive-routing enable on
nv set interface swp10s0 router adaptive-routing enable on
nv set interface swp10s1 router adaptive-routing enable on
nv set interface swp11s0 router adaptive-routing enable on
nv set interface swp11s1 router adaptive-routing enable on
nv set interface swp12s0 router adaptive-routing enable on
nv set interface swp12s1 router adaptive-routing enable on
nv set interface swp13s0 router adaptive-routing enable on
nv set interface swp13s1 router adaptive-routing enable on
nv set interface swp14s0 router adaptive-routing enable on
nv set interface swp14s1 router adaptive-routing enable on
nv set interface swp15s0 router adaptive-routing enable on
nv set interface swp15s1 router adaptive-routing enable on
nv set interface swp16s0 router adaptive-routing enable on
nv set interface swp16s1 router adaptive-routing enable on
nv config apply
